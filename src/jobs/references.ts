/** References in a step's payload, `{"$from":"fetch#/user/id"}`: found, checked, and replaced in the text itself. */
import type { InvalidField } from "../base/errors.ts";
import { JsonCursor, type RawJson } from "../base/json.ts";
import { findAll, formatPointer, parsePointer } from "../base/json-pointer.ts";

/** What `input#…` refers to: the job's own payload. No step can have this name. */
export const INPUT = "input";

const MAX_REFERENCE = 1_024;
/** What a payload may grow to by references, which can each stand for a whole response. */
const MAX_FILLED_CHARS = 16 * 1024 * 1024;
/** What the pointers of one payload's faults may come to: each repeats the keys above it, which may be half a request. */
const MAX_POINTERS_CHARS = 64 * 1024;

/**
 * An object whose one and only member is `$from` with a string. Any other object is data and is sent as it is; so is
 * whatever a reference brings in: it is not looked through for further references.
 */
interface Reference {
  /** As it was written: `fetch#/user/id`. */
  readonly text: string;
  /** Where the object stands in the payload's text. */
  readonly start: number;
  readonly end: number;
  /** Where its string stands in the payload, as the keys of a JSON Pointer. */
  readonly path: readonly string[];
}

interface Source {
  /** A step's name, or {@link INPUT}. */
  readonly name: string;
  readonly path: readonly string[];
}

const WANTED = `"<name of an earlier step>#<JSON Pointer>" or "${INPUT}#<JSON Pointer>"`;

/** What is wrong with the references of the step at `position`; pointers begin at its payload. */
export function faultsOfReferences(
  payload: RawJson,
  names: readonly unknown[],
  position: number,
): InvalidField[] {
  const faults: InvalidField[] = [];
  let length = 0;
  for (const { text, path } of referencesIn(payload)) {
    const detail = faultOf(text, names, position);
    if (detail === null) continue;
    const pointer = formatPointer(path);
    length += pointer.length;
    if (length > MAX_POINTERS_CHARS) {
      faults.push({ pointer, detail: `${detail}; there may be more, which are not told` });
      break;
    }
    faults.push({ pointer, detail });
  }
  return faults;
}

function faultOf(text: string, names: readonly unknown[], position: number): string | null {
  const source = readReference(text);
  if (typeof source === "string") return source;
  if (source.name === INPUT) return null;
  const at = names.indexOf(source.name);
  if (at < 0)
    return `names ${JSON.stringify(source.name)}, which is no step of this job; has to be ${WANTED}`;
  return at < position ? null : `names step ${source.name}, which does not come before this one`;
}

/** Names of the steps that a payload refers to. */
export function namesReferredTo(payload: RawJson): Set<string> {
  const sources = referencesIn(payload).map(({ text }) => readReference(text));
  return new Set(
    sources.flatMap((source) => (typeof source === "string" || source.name === INPUT ? [] : [source.name])),
  );
}

/** The text of a source, or why there is none: the rest of a sentence that begins with the reference. */
export type SourceText = { readonly text: string } | { readonly missing: string };

/**
 * The payload's text with each reference replaced by the raw text of what it refers to; every other byte stays. Or a
 * sentence that names the reference that leads nowhere.
 *
 * @param read is asked once for each source.
 */
export function fillIn(
  payload: RawJson,
  read: (name: string) => SourceText,
): { readonly text: string } | { readonly unresolved: string } {
  const references = referencesIn(payload);
  const found = new Map<string, string>();
  for (const [name, wanted] of bySource(references)) {
    const source = read(name);
    const texts = [...wanted.keys()];
    if ("missing" in source) return { unresolved: `${quote(texts[0]!)} ${source.missing}.` };
    for (const [i, value] of findAll(source.text, [...wanted.values()]).entries()) {
      if (value === null) return { unresolved: `${quote(texts[i]!)} finds nothing in ${nameOf(name)}.` };
      found.set(texts[i]!, value);
    }
  }
  const pieces: string[] = [];
  let at = 0;
  let length = payload.text.length;
  for (const { text, start, end } of references) {
    const value = found.get(text) ?? "";
    pieces.push(payload.text.slice(at, start), value);
    at = end;
    length += value.length - (end - start);
    if (length > MAX_FILLED_CHARS)
      return { unresolved: `${quote(text)} makes the payload longer than 16 MiB.` };
  }
  pieces.push(payload.text.slice(at));
  return { text: pieces.join("") };
}

/** How a sentence calls a source. */
export function nameOf(source: string): string {
  return source === INPUT ? "the pipeline's input" : `the response of step ${source}`;
}

function quote(text: string): string {
  return `{"$from":${JSON.stringify(text)}}`;
}

/** By source, what is wanted of it: the path of each reference by its text. */
function bySource(references: readonly Reference[]): Map<string, Map<string, readonly string[]>> {
  const sources = new Map<string, Map<string, readonly string[]>>();
  for (const { text } of references) {
    const source = readReference(text);
    if (typeof source === "string") throw new Error(`a reference was not checked: ${text}`);
    const wanted = sources.get(source.name) ?? new Map<string, readonly string[]>();
    sources.set(source.name, wanted.set(text, source.path));
  }
  return sources;
}

/** The source and path of a reference, or what is wrong with it. */
function readReference(text: string): Source | string {
  if (text.length > MAX_REFERENCE) return `has to have at most ${MAX_REFERENCE} characters`;
  const hash = text.indexOf("#");
  if (hash < 1) return `has to be ${WANTED}`;
  const path = parsePointer(text.slice(hash + 1));
  if (path === null)
    return "has a malformed JSON Pointer: it is empty or begins with /, and ~ stands only in ~0 and ~1 (RFC 6901)";
  return { name: text.slice(0, hash), path };
}

function referencesIn(payload: RawJson): readonly Reference[] {
  // A key can be written with escapes: then only the walk can tell.
  const { text } = payload;
  return text.includes("$from") || text.includes("\\u") ? new ReferenceFinder(text).all() : [];
}

class ReferenceFinder extends JsonCursor {
  private readonly references: Reference[] = [];
  private readonly path: string[] = [];

  all(): readonly Reference[] {
    this.visit();
    return this.references;
  }

  private visit(): void {
    const kind = this.kind();
    if (kind === "object") this.object();
    else if (kind === "array") this.items((index) => this.within(String(index), () => this.visit()));
    else this.skip();
  }

  private object(): void {
    const start = this.at;
    let members = 0;
    let from: string | null = null;
    this.members((key) => {
      members += 1;
      this.within(key, () => {
        if (key === "$from" && this.kind() === "string") from = this.string();
        else this.visit();
      });
    });
    if (members === 1 && from !== null)
      this.references.push({ text: from, start, end: this.at, path: [...this.path, "$from"] });
  }

  private within(key: string, visit: () => void): void {
    this.path.push(key);
    visit();
    this.path.pop();
  }
}
