/** The version, written into the bundle by build.mjs. */
export const VERSION: string = typeof __ERRAND_VERSION__ === "string" ? __ERRAND_VERSION__ : "0.0.0-dev";
