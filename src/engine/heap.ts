/** A binary heap by time: what is due first is on top. */

interface Entry<T> {
  readonly at: number;
  readonly item: T;
}

export class Heap<T> {
  private readonly entries: Entry<T>[] = [];

  peek(): Entry<T> | undefined {
    return this.entries[0];
  }

  push(at: number, item: T): void {
    const { entries } = this;
    const entry = { at, item };
    let i = entries.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (entries[parent]!.at <= at) break;
      entries[i] = entries[parent]!;
      i = parent;
    }
    entries[i] = entry;
  }

  /** Throws when it is empty. */
  pop(): Entry<T> {
    const { entries } = this;
    const top = entries[0];
    const last = entries.pop();
    if (top === undefined || last === undefined) throw new Error("the heap is empty");
    if (entries.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && entries[child + 1]!.at < entries[child]!.at) child += 1;
      if (last.at <= entries[child]!.at) break;
      entries[i] = entries[child]!;
      i = child;
    }
    entries[i] = last;
    return top;
  }
}
