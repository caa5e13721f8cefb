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
  if (collected.length === 0) return text;
  const pieces = text.split(QUOTED_MARK);
  const raws = collected;
  return pieces.map((piece, i) => (i === 0 ? piece : raws[i - 1] + piece)).join("");
}

export class JsonFault extends Error {}

export const MAX_DEPTH = 64;

/**
 * Parses a request body. Values at a place where `isRaw` says so come back as {@link RawJson}. Throws a
 * {@link JsonFault} when the text is not JSON (RFC 8259), nests deeper than {@link MAX_DEPTH}, or names a key twice
 * outside a raw value, where one of the two would silently be lost.
 *
 * @param isRaw asked with the path of keys, `[]` for the index of an array: `jobs/[]/payload`.
 * @param maxDepth `Infinity` for what Errand itself has said: a response in it may be of any depth.
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

/** Walks text that is known to be valid JSON beside its parsed value, in one pass over the characters. */
class Scanner {
  private at = 0;
  private readonly text: string;
  private readonly isRaw: (path: string) => boolean;
  private readonly maxDepth: number;

  constructor(text: string, isRaw: (path: string) => boolean, maxDepth: number) {
    this.text = text;
    this.isRaw = isRaw;
    this.maxDepth = maxDepth;
  }

  scan(value: unknown): unknown {
    return this.value(value, "", 0);
  }

  private value(value: unknown, path: string, depth: number): unknown {
    this.space();
    if (path !== "" && this.isRaw(path)) {
      const start = this.at;
      this.skip(depth);
      return new RawJson(this.text.slice(start, this.at));
    }
    const first = this.text.charCodeAt(this.at);
    if (first === OPEN_OBJECT) return this.object(value as Record<string, unknown>, path, depth + 1);
    if (first === OPEN_ARRAY) return this.array(value as unknown[], path, depth + 1);
    this.skip(depth);
    return value;
  }

  private object(object: Record<string, unknown>, path: string, depth: number): unknown {
    this.limit(depth);
    const seen = new Set<string>();
    this.at += 1;
    for (this.space(); this.text.charCodeAt(this.at) !== CLOSE_OBJECT; this.space()) {
      if (this.text.charCodeAt(this.at) === COMMA) this.at += 1;
      this.space();
      const start = this.at;
      this.string();
      const key = JSON.parse(this.text.slice(start, this.at)) as string;
      if (seen.has(key)) throw new JsonFault(`the key ${JSON.stringify(key)} appears twice in one object`);
      seen.add(key);
      this.space();
      this.at += 1;
      const inner = this.value(object[key], path === "" ? key : `${path}/${key}`, depth);
      if (inner !== object[key])
        Object.defineProperty(object, key, { value: inner, enumerable: true, writable: true });
    }
    this.at += 1;
    return object;
  }

  private array(array: unknown[], path: string, depth: number): unknown {
    this.limit(depth);
    this.at += 1;
    for (let i = 0; ; ) {
      this.space();
      const next = this.text.charCodeAt(this.at);
      if (next === CLOSE_ARRAY) break;
      if (next === COMMA) this.at += 1;
      array[i] = this.value(array[i], path === "" ? "[]" : `${path}/[]`, depth);
      i += 1;
    }
    this.at += 1;
    return array;
  }

  /** Passes one whole value without looking at what it says. */
  private skip(depth: number): void {
    const { text } = this;
    let level = depth;
    do {
      const char = text.charCodeAt(this.at);
      if (char === QUOTE) {
        this.string();
      } else if (char === OPEN_OBJECT || char === OPEN_ARRAY) {
        level += 1;
        this.limit(level);
        this.at += 1;
      } else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) {
        level -= 1;
        this.at += 1;
      } else if (level > depth) {
        this.at += 1;
      } else {
        while (this.at < text.length && !ENDS_SCALAR.has(text.charCodeAt(this.at))) this.at += 1;
      }
    } while (level > depth);
  }

  private string(): void {
    const { text } = this;
    for (this.at += 1; ; this.at += 1) {
      const char = text.charCodeAt(this.at);
      if (char === QUOTE) break;
      if (char === BACKSLASH) this.at += 1;
    }
    this.at += 1;
  }

  private limit(depth: number): void {
    if (depth > this.maxDepth) throw new JsonFault(`it nests deeper than ${this.maxDepth} levels`);
  }

  private space(): void {
    while (SPACES.has(this.text.charCodeAt(this.at))) this.at += 1;
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
const SPACES = new Set([0x20, 0x09, 0x0a, 0x0d]);
const ENDS_SCALAR = new Set([...SPACES, COMMA, CLOSE_OBJECT, CLOSE_ARRAY]);
