/** What build.mjs puts into the bundle, and text files that are imported as strings. */

/** The version in package.json; absent when the sources run unbundled. */
declare const __ERRAND_VERSION__: string | undefined;

/** The bundled code of src/store/sqlite/worker.ts; absent when the sources run unbundled. */
declare const __ERRAND_WORKER__: string | undefined;

declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.html" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const text: string;
  export default text;
}
