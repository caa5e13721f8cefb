/** JSON whose payloads keep their bytes: parsed to be checked, stored and sent as they were received. */
import { randomUUID } from "node:crypto";

/** A JSON value kept as its text. `1.0`, `9007199254740993`, key order and escapes survive, as they do in no JS value. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  /** Called by JSON.stringify: leaves a mark that {@link stringify} swaps for the text. */
  toJSON(): string {
    collected.push(this.text);
    return MARK;
  }
}

/** Unguessable, so that no user's string can be taken for it. */
const MARK = `raw:${randomUUID()}`;
const QUOTED_MARK = `"${MARK}"`;
let collected: string[] = [];

/** JSON.stringify in which every {@link RawJson} stands as the bytes that were received. */
export function stringify(value: unknown, indent?: number): string {
  collected = [];
  const text = JSON.stringify(value, null, indent);
  let woven = "";
  let done = 0;
  for (const raw of collected) {
    const mark = text.indexOf(QUOTED_MARK, done);
    woven += text.slice(done, mark) + raw;
    done = mark + QUOTED_MARK.length;
  }
  return woven + text.slice(done);
}

export class JsonFault extends Error {}

export const MAX_DEPTH = 64;

/**
 * Parses a request body. Values at a place where `isRaw` says so come back as {@link RawJson}. Throws a
 * {@link JsonFault} when the text is not JSON (RFC 8259), nests deeper than {@link MAX_DEPTH}, or, outside a raw value,
 * has an object of over {@link MAX_MEMBERS} members or names a key twice, where one of the two would silently be lost.
 *
 * @param isRaw asked with the path of keys, `[]` for the index of an array: `jobs/[]/payload`.
 * @param maxDepth `Infinity` for what Errand itself has said: a response in it may be of any depth, and have any number
 *   of headers.
 */
export function parseJson(text: string, isRaw: (path: string) => boolean, maxDepth = MAX_DEPTH): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new JsonFault(error instanceof Error ? error.message : "not JSON");
  }
  return new Scanner(text, isRaw, maxDepth).scan(value);
}

/** Passes over text that is known to be valid JSON, a value at a time, without making anything of it. */
export class JsonCursor {
  protected at = 0;
  protected readonly text: string;
  private depth = 0;
  private readonly maxDepth: number;

  /** Going deeper than `maxDepth` throws a {@link JsonFault}. */
  constructor(text: string, maxDepth = Number.POSITIVE_INFINITY) {
    this.text = text;
    this.maxDepth = maxDepth;
  }

  /** Goes to the next value and says what it is. */
  protected kind(): "object" | "array" | "string" | "other" {
    this.space();
    const first = this.text.charCodeAt(this.at);
    if (first === OPEN_OBJECT) return "object";
    if (first === OPEN_ARRAY) return "array";
    return first === QUOTE ? "string" : "other";
  }

  /** Passes an object: `visit` is called before the value of each member, and has to pass it. */
  protected members(visit: (key: string) => void): void {
    this.enter();
    for (this.space(); this.text.charCodeAt(this.at) !== CLOSE_OBJECT; this.space()) {
      if (this.text.charCodeAt(this.at) === COMMA) this.at += 1;
      this.space();
      const key = this.string();
      this.space();
      this.at += 1;
      this.space();
      visit(key);
    }
    this.leave();
  }

  /** Passes an array: `visit` is called before each item, and has to pass it. */
  protected items(visit: (index: number) => void): void {
    this.enter();
    this.space();
    for (let index = 0; this.text.charCodeAt(this.at) !== CLOSE_ARRAY; index += 1) {
      if (this.text.charCodeAt(this.at) === COMMA) this.at += 1;
      this.space();
      visit(index);
      this.space();
    }
    this.leave();
  }

  /** Passes a string and answers what it says. */
  protected string(): string {
    const start = this.at;
    this.skipString();
    const quoted = this.text.slice(start, this.at);
    return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
  }

  /** Passes one whole value without looking at what it says. */
  protected skip(): void {
    const { text } = this;
    const depth = this.depth;
    do {
      const char = text.charCodeAt(this.at);
      if (char === QUOTE) this.skipString();
      else if (char === OPEN_OBJECT || char === OPEN_ARRAY) this.enter();
      else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) this.leave();
      else if (this.depth > depth) this.at += 1;
      else while (this.at < text.length && !ENDS_SCALAR.has(text.charCodeAt(this.at))) this.at += 1;
    } while (this.depth > depth);
  }

  protected space(): void {
    while (SPACES.has(this.text.charCodeAt(this.at))) this.at += 1;
  }

  private skipString(): void {
    const { text } = this;
    for (this.at += 1; ; this.at += 1) {
      const char = text.charCodeAt(this.at);
      if (char === QUOTE) break;
      if (char === BACKSLASH) this.at += 1;
    }
    this.at += 1;
  }

  private enter(): void {
    this.depth += 1;
    if (this.depth > this.maxDepth) throw new JsonFault(`it nests deeper than ${this.maxDepth} levels`);
    this.at += 1;
  }

  private leave(): void {
    this.depth -= 1;
    this.at += 1;
  }
}

/** Whether a text that is valid JSON nests no deeper than that. */
export function nestsWithin(text: string, maxDepth: number): boolean {
  try {
    new Gauge(text, maxDepth).pass();
    return true;
  } catch (error) {
    if (error instanceof JsonFault) return false;
    throw error;
  }
}

class Gauge extends JsonCursor {
  pass(): void {
    this.space();
    this.skip();
  }
}

/** Walks the text beside its parsed value, in one pass over the characters. */
class Scanner extends JsonCursor {
  private readonly isRaw: (path: string) => boolean;
  private readonly maxMembers: number;

  constructor(text: string, isRaw: (path: string) => boolean, maxDepth: number) {
    super(text, maxDepth);
    this.isRaw = isRaw;
    this.maxMembers = maxDepth === MAX_DEPTH ? MAX_MEMBERS : Number.POSITIVE_INFINITY;
  }

  /** `path` null: below what is longer than any place. */
  scan(value: unknown, path: string | null = ""): unknown {
    const kind = this.kind();
    if (path !== null && path !== "" && this.isRaw(path)) {
      const start = this.at;
      this.skip();
      return new RawJson(this.text.slice(start, this.at));
    }
    if (kind === "object") return this.object(value as Record<string, unknown>, path);
    if (kind === "array") return this.array(value as unknown[], path);
    this.skip();
    return value;
  }

  private object(object: Record<string, unknown>, path: string | null): unknown {
    const seen = new Set<string>();
    this.members((key) => {
      if (seen.size === this.maxMembers)
        throw new JsonFault(`an object in it, no part of a payload, has more than ${MAX_MEMBERS} members`);
      if (seen.has(key)) throw new JsonFault(`the key ${JSON.stringify(key)} appears twice in one object`);
      seen.add(key);
      const inner = this.scan(object[key], pathTo(path, key));
      if (inner !== object[key])
        Object.defineProperty(object, key, { value: inner, enumerable: true, writable: true });
    });
    return object;
  }

  private array(array: unknown[], path: string | null): unknown {
    const inner = pathTo(path, "[]");
    this.items((index) => {
      array[index] = this.scan(array[index], inner);
    });
    return array;
  }
}

/** Longer than the path of any raw place. Reading a longer one for each value below it took seconds, 20 of a megabyte. */
const MAX_PATH_CHARS = 64;

/** Far more than any object has that Errand takes; a payload may have more. Ninety thousand took a quarter of a second. */
const MAX_MEMBERS = 1_000;

function pathTo(path: string | null, key: string): string | null {
  if (path === null || path.length + key.length > MAX_PATH_CHARS) return null;
  return path === "" ? key : `${path}/${key}`;
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
const SPACES = new Set([0x20, 0x09, 0x0a, 0x0d]);
const ENDS_SCALAR = new Set([...SPACES, COMMA, CLOSE_OBJECT, CLOSE_ARRAY]);
