/** URLs as they are parsed by everybody (https://url.spec.whatwg.org/), each only once on its way through a request. */

let parsedText = "";
let parsed: Readonly<URL> | null = null;

/**
 * The URL that a text spells, or null. The one that was asked for last is remembered: a job's URL is looked at when it
 * is checked, when it is held against the egress rules, and when the job finds its lane.
 */
export function parseUrl(text: string): Readonly<URL> | null {
  if (text !== parsedText) {
    parsed = URL.parse(text);
    parsedText = text;
  }
  return parsed;
}

/** The URL of a text that was checked before. Throws a TypeError for any other. */
export function knownUrl(text: string): Readonly<URL> {
  return parseUrl(text) ?? new URL(text);
}
