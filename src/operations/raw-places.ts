/** Where inputs hold values whose bytes are kept as they came: asked by every door that reads JSON. */

const RAW_PLACES: ReadonlySet<string> = new Set([
  "payload",
  "steps/[]/payload",
  "jobs/[]/payload",
  "jobs/[]/steps/[]/payload",
]);

/** `path` as in {@link parseJson}: the keys from the input on, `[]` for the index of an array. */
export function isRawPlace(path: string): boolean {
  return RAW_PLACES.has(path);
}
