/** JSON Pointers (RFC 6901), followed in the text of a document, so that what they find keeps its bytes. */
import { JsonCursor } from "./json.ts";

/** The keys along a pointer, or null when it is malformed. */
export function parsePointer(pointer: string): string[] | null {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return null;
  return pointer.slice(1).split("/").map(unescapeKey);
}

export function formatPointer(keys: readonly string[]): string {
  return keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** RFC 6901 §4: first `~1`, then `~0`, so that `~01` is `~1`. */
function unescapeKey(token: string): string {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

/**
 * What each path leads to, as raw text, null where it leads nowhere: one pass over the text, however many paths there
 * are. A key that an object has twice counts as JSON.parse counts it: the last one is meant.
 *
 * @param text has to be valid JSON.
 */
export function findAll(text: string, paths: readonly (readonly string[])[]): (string | null)[] {
  const root = new Branch();
  const ends = paths.map((path) => path.reduce((branch, key) => branch.child(key), root));
  new Finder(text).find(root);
  return ends.map((branch) => branch.found(text));
}

/** One visit of a value in the text. */
interface Visit {
  readonly start: number;
  end: number;
}

/** A place that some path leads to or through. */
class Branch {
  readonly children = new Map<string, Branch>();
  private readonly parent: Branch | null;
  visit: Visit | null = null;
  /** The visit of the parent during which this one was found; an older one was of a doubled key. */
  within: Visit | null = null;

  constructor(parent: Branch | null = null) {
    this.parent = parent;
  }

  child(key: string): Branch {
    let child = this.children.get(key);
    if (child === undefined) {
      child = new Branch(this);
      this.children.set(key, child);
    }
    return child;
  }

  found(text: string): string | null {
    return this.visit !== null && this.isReached() ? text.slice(this.visit.start, this.visit.end) : null;
  }

  private isReached(): boolean {
    return this.parent === null || (this.within === this.parent.visit && this.parent.isReached());
  }
}

class Finder extends JsonCursor {
  /** Goes as deep as the paths do, and passes everything beside them. */
  find(branch: Branch, within: Visit | null = null): void {
    const kind = this.kind();
    const visit = { start: this.at, end: 0 };
    branch.visit = visit;
    branch.within = within;
    const follow = (key: string) => {
      const child = branch.children.get(key);
      if (child === undefined) this.skip();
      else this.find(child, visit);
    };
    if (branch.children.size > 0 && kind === "object") this.members(follow);
    else if (branch.children.size > 0 && kind === "array") this.items((index) => follow(String(index)));
    else this.skip();
    visit.end = this.at;
  }
}
