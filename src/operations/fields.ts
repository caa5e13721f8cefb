/** The fields that inputs are made of: each checked once, each with a message that says what would be right. */
import * as v from "valibot";
import { parseTime } from "../base/clock.ts";
import { parseDuration } from "../base/duration.ts";
import { RawJson } from "../base/json.ts";
import { parseUrl } from "../base/url.ts";
import { isForbiddenHeader } from "../jobs/forbidden-headers.ts";
import type { PageRequest } from "../store/store.ts";

/**
 * An object that takes these fields and no other. Its entries have no prototype, so that `constructor` and the like are
 * unknown fields as any other.
 */
export function closed<const T extends v.ObjectEntries>(entries: T): v.StrictObjectSchema<T, undefined> {
  return v.strictObject(Object.assign(Object.create(null) as object, entries));
}

/**
 * A list of `min` to `max` items. The length is looked at first: 300,000 items, each in order, took a third of a second.
 */
export function list<const T extends v.GenericSchema>(item: T, min: number, max: number, message: string) {
  const short = v.maxLength<unknown[], number, string>(max, message);
  const items = v.pipe(v.array(v.unknown()), short, v.array(item), v.maxLength(max, message));
  return min === 0 ? items : v.pipe(items, v.minLength(min, message));
}

const days = (count: number) => count * 86_400_000;

/** A duration between `minMs` and `maxMs`; `range` is how the message calls the two, `what` says what it is for. */
export function duration(minMs: number, maxMs: number, range: string, what: string) {
  return v.pipe(
    v.string(),
    v.check((text) => {
      const ms = parseDuration(text);
      return ms !== null && ms >= minMs && ms <= maxMs;
    }, `has to be a whole number and a unit (s, m, h, d), such as "30s" or "5m", ${range}`),
    v.metadata({ examples: ["30s"], pattern: "^\\d{1,9}[smhd]$" }),
    v.description(`${what}: a whole number and a unit of s, m, h, d, ${range}.`),
  );
}

export const delay = (what: string) => duration(0, days(365), "up to 365d", what);
export const timeout = duration(
  1_000,
  15 * 60_000,
  "from 1s to 15m",
  "How long one attempt may take in all, 30s by default",
);
const retryDelay = delay("A wait");
export const dedupeWindow = duration(
  1_000,
  days(30),
  "from 1s to 30d",
  "For how long from its creation a job counts as the one with this dedupe_key, 24h by default",
);
export const approvalTimeout = duration(
  1_000,
  days(365),
  "from 1s to 365d",
  "When nobody has approved it in this time it is rejected by `system`; without it, it waits for ever",
);
export const ratePeriod = duration(1_000, days(30), "from 1s to 30d", "The length of a period");
export const overlap = duration(
  0,
  days(30),
  "up to 30d",
  "For how long earlier secrets still sign, 24h by default, 0s for not at all",
);

/** A time; `what` says what it is for. */
export const time = (what: string) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => parseTime(text) !== null,
      `has to be a time as in RFC 3339, such as "2026-11-21T09:00:00Z", with an hour from 00 to 23 and a year from 0000 to 9999 in UTC`,
    ),
    v.description(`${what}: a time as in RFC 3339, such as 2026-11-21T09:00:00Z.`),
    v.metadata({ format: "date-time", examples: ["2026-11-21T09:00:00Z"] }),
  );

const MAX_URL = 2_048;

export const url = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const fault = dataset.typed ? urlFault(dataset.value) : null;
    if (fault !== null) addIssue({ message: fault });
  }),
  v.description("What to call: an absolute http or https URL, without user name and password."),
  v.metadata({ format: "uri", maxLength: MAX_URL, examples: ["https://example.com/hook"] }),
);

export const callbackUrl = v.pipe(
  url,
  v.description("Told how the job ended, by a signed POST with five attempts of its own."),
);

function urlFault(text: string): string | null {
  if (text.length > MAX_URL) return `has to have at most ${MAX_URL} characters, not ${text.length}`;
  if (/[\s\\\u0000-\u001f\u007f]/.test(text))
    return "must not contain spaces, backslashes or control characters; percent-encode them";
  if (!text.isWellFormed()) return NOT_TEXT;
  const parsed = parseUrl(text);
  if (parsed === null) return `has to be an absolute URL, such as "https://example.com/hook"`;
  const { protocol, username, password } = parsed;
  if (protocol !== "http:" && protocol !== "https:")
    return `has to begin with http:// or https://, not ${protocol}`;
  if (!/^https?:\/\//i.test(text))
    return "has to have two slashes after the scheme, as in https://example.com/";
  if (username !== "" || password !== "")
    return "must not carry a user name or password; send an Authorization header instead";
  return null;
}

/** A value whose bytes are kept: see base/json.ts. In the JSON Schema, any value. */
export const payload = v.pipe(
  v.instance(RawJson),
  v.description("Any JSON value. It is sent byte for byte as it was received."),
);

export const method = v.pipe(
  v.picklist(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  v.description("The HTTP method; POST by default."),
);

const MAX_HEADERS = 50;
/** RFC 9110 §5.6.2: a token. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/;
const MAX_HEADER_VALUE = 8_192;

/** Names that valibot's record passes over: they would be lost without a word. */
const PASSED_OVER = ["__proto__", "constructor", "prototype"];

/** An object of texts: no array, and with every name that was given, to be judged by what follows in the pipe. */
function texts() {
  const schema = v.record(v.string(), v.string());
  const read = schema["~run"];
  return Object.assign(schema, {
    "~run"(...[dataset, config]: Parameters<typeof read>): ReturnType<typeof read> {
      const given: unknown = dataset.value;
      // What is no object and no record is refused by the record itself.
      const result = read.call(schema, dataset, config);
      if (!result.typed || typeof given !== "object" || given === null) return result;
      if (Array.isArray(given)) v._addIssue(schema, "type", result, config, { input: given });
      for (const name of PASSED_OVER)
        if (Object.hasOwn(given, name))
          Object.defineProperty(result.value, name, { value: "", enumerable: true });
      return result;
    },
  });
}

export const headers = v.pipe(
  texts(),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const seen = new Set<string>();
    const entries = Object.entries(dataset.value);
    if (entries.length > MAX_HEADERS) {
      addIssue({ message: `can hold at most ${MAX_HEADERS} headers, not ${entries.length}` });
      return;
    }
    for (const [key, value] of entries) {
      const message = headerFault(key, value, seen);
      if (message !== null)
        addIssue({ message, path: [{ type: "object", origin: "value", input: dataset.value, key, value }] });
      seen.add(key.toLowerCase());
    }
  }),
  v.description(
    "Headers to send, up to 50. Hop-by-hop headers, host, content-length, webhook-* and errand-* are not taken.",
  ),
);

function headerFault(name: string, value: string, seen: ReadonlySet<string>): string | null {
  if (!TOKEN.test(name)) return "is not a header name: letters, digits and !#$%&'*+-.^_`|~ make one";
  if (seen.has(name.toLowerCase())) return "is given twice; header names do not differ by case";
  if (PASSED_OVER.includes(name)) return "is a name that Errand does not take for a header";
  if (isForbiddenHeader(name)) return "is a header that Errand or the connection sets; leave it out";
  if (/[\r\n\0]/.test(value)) return "must not contain CR, LF or NUL";
  if (/[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(value))
    return "must not contain control characters";
  // RFC 9110 §5.5: a field value is made of octets.
  if (/[^\u0000-\u00ff]/.test(value))
    return "must not contain characters beyond ISO-8859-1; encode them, as in RFC 8187";
  if (value.length > MAX_HEADER_VALUE) return `has to have at most ${MAX_HEADER_VALUE} characters`;
  return null;
}

export const maxAttempts = integer(1, 100, "How often the request is made at most, 1 to 100; 3 by default.");

export function integer(min: number, max: number, description: string) {
  const message = `has to be a whole number from ${min} to ${max}`;
  return v.pipe(
    v.number(message),
    v.integer(message),
    v.minValue(min, message),
    v.maxValue(max, message),
    v.description(description),
  );
}

/** A lone surrogate (RFC 8259 §8.2) cannot be kept as UTF-8: two different texts would become the same one. */
const NOT_TEXT = "must not contain half of a surrogate pair, which is no character";

export function text(min: number, max: number, description: string) {
  const message =
    min === 0 ? `has to have at most ${max} characters` : `has to have ${min} to ${max} characters`;
  return v.pipe(
    v.string(),
    v.minLength(min, message),
    v.maxLength(max, message),
    v.check((value) => !/[\u0000-\u001f\u007f]/.test(value), "must not contain control characters"),
    v.check((value) => value.isWellFormed(), NOT_TEXT),
    v.description(description),
  );
}

export const retryDelays = v.pipe(
  list(retryDelay, 1, 20, "has to have 1 to 20 durations"),
  v.description(
    "The waits between attempts, such as 5s, 1m, 1h, in place of the backoff of 20s, 40s, 80s and so on; the last one repeats.",
  ),
);

const MESSAGE_STATUS = `has to be a status such as 404 or a class such as "4xx"`;
export const noRetryOn = v.pipe(
  list(
    v.union(
      [
        v.pipe(
          v.number(),
          v.integer(MESSAGE_STATUS),
          v.minValue(100, MESSAGE_STATUS),
          v.maxValue(599, MESSAGE_STATUS),
        ),
        v.pipe(v.string(), v.regex(/^[1-5]xx$/, MESSAGE_STATUS)),
      ],
      MESSAGE_STATUS,
    ),
    0,
    100,
    "can hold at most 100 entries",
  ),
  v.description(`Statuses or classes, such as 404 or 4xx, that end the job in "failed" at once.`),
);

export const queueName = v.pipe(
  v.string(),
  v.regex(/^[a-zA-Z0-9_-]{1,64}$/, "has to have 1 to 64 letters, digits, _ or -"),
  v.description("The name of a queue."),
);

export const tags = v.pipe(
  list(text(1, 64, "A tag."), 0, 10, "can hold at most 10 tags"),
  v.check((list) => new Set(list).size === list.length, "must not name a tag twice"),
  v.description("Up to 10 words of your own, to filter by."),
);

export const note = text(0, 1_000, "A word to go with the decision.");

const DEFAULT_LIMIT = 20;

export const page = {
  limit: v.optional(integer(1, 100, `How many to answer, 1 to 100; ${DEFAULT_LIMIT} by default.`)),
  cursor: v.optional(text(1, 255, "The next_cursor of the page before.")),
};

/** The page that these fields ask for. */
export function pageRequest({
  limit = DEFAULT_LIMIT,
  cursor = null,
}: {
  limit?: number | undefined;
  cursor?: string | null | undefined;
}): PageRequest {
  return { limit, cursor };
}

export const id = (what: string) => v.pipe(v.string(), v.description(`The id of ${what}.`));
