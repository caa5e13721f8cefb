/** A binary heap by time, in which each item has at most one place: what is due first is on top. */

interface Entry<T> {
  readonly at: number;
  readonly item: T;
}

export class Heap<T> {
  private readonly entries: Entry<T>[] = [];
  /** Where each item's entry is. */
  private readonly places = new Map<T, number>();

  get size(): number {
    return this.entries.length;
  }

  peek(): Entry<T> | undefined {
    return this.entries[0];
  }

  /** Puts an item in, or moves it to another time. */
  put(at: number, item: T): void {
    const place = this.places.get(item) ?? this.entries.length;
    this.settle({ at, item }, place);
  }

  /** Throws when it is empty. */
  pop(): Entry<T> {
    const top = this.entries[0];
    if (top === undefined) throw new Error("the heap is empty");
    this.remove(top.item);
    return top;
  }

  /** Takes an item out, where it is in. */
  remove(item: T): void {
    const place = this.places.get(item);
    if (place === undefined) return;
    this.places.delete(item);
    const last = this.entries.pop()!;
    // The last one fills the gap, unless it was the gap.
    if (place < this.entries.length) this.settle(last, place);
  }

  /** Writes an entry where it belongs: up or down from a place whose own entry is not needed any more. */
  private settle(entry: Entry<T>, place: number): void {
    let i = place;
    for (let parent = (i - 1) >> 1; i > 0 && this.entries[parent]!.at > entry.at; parent = (i - 1) >> 1) {
      this.write(this.entries[parent]!, i);
      i = parent;
    }
    for (let child = this.earlierChild(i); child !== null; child = this.earlierChild(i)) {
      if (this.entries[child]!.at >= entry.at) break;
      this.write(this.entries[child]!, i);
      i = child;
    }
    this.write(entry, i);
  }

  private earlierChild(i: number): number | null {
    const [left, right] = [2 * i + 1, 2 * i + 2];
    if (left >= this.entries.length) return null;
    return right < this.entries.length && this.entries[right]!.at < this.entries[left]!.at ? right : left;
  }

  private write(entry: Entry<T>, i: number): void {
    this.entries[i] = entry;
    this.places.set(entry.item, i);
  }
}
