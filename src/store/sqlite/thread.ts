/** Starts the store's second thread, and asks it things. */
import { Worker } from "node:worker_threads";
import type { WorkerReply, WorkerRequest } from "./worker.ts";

type Task = WorkerRequest["task"];

export class StoreThread {
  private worker: Worker | null = null;
  private readonly waiting = new Map<
    number,
    { resolve: (reply: WorkerReply) => void; reject: (error: Error) => void }
  >();
  private lastId = 0;
  private readonly options: { workerData: { file: string; addon: string } };

  /** `addon` is the file that the main thread loaded: two copies of SQLite in one process would break its locks. */
  constructor(file: string, addon: string) {
    this.options = { workerData: { file, addon } };
  }

  /** The thread starts with the first task: an idle service does not need it. */
  ask(task: Task): Promise<WorkerReply> {
    this.worker ??= this.start();
    const { worker } = this;
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      const request: WorkerRequest = { id, task };
      worker.postMessage(request);
    });
  }

  async close(): Promise<void> {
    // Kept here, since a thread that has said it is done may be gone, and forgotten, before it is told to end.
    const { worker } = this;
    if (worker === null) return;
    worker.ref();
    await this.ask("close");
    await worker.terminate();
  }

  private start(): Worker {
    // In the bundle the worker's code is a text of its own; from sources it is the file beside this one.
    const worker =
      typeof __ERRAND_WORKER__ === "string"
        ? new Worker(__ERRAND_WORKER__, { ...this.options, eval: true })
        : new Worker(new URL("./worker.ts", import.meta.url), this.options);
    worker.unref();
    worker.on("message", (reply: WorkerReply) => this.settle(reply));
    worker.on("error", (error) => this.fail(worker, error));
    worker.on("exit", () => this.fail(worker, new Error("the store's thread has ended")));
    return worker;
  }

  private settle(reply: WorkerReply): void {
    const asked = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if (reply.error === null) asked?.resolve(reply);
    else asked?.reject(Object.assign(new Error(reply.error), { code: reply.code }));
  }

  /** The next task starts another. */
  private fail(worker: Worker, error: unknown): void {
    if (this.worker !== worker) return;
    for (const asked of this.waiting.values())
      asked.reject(error instanceof Error ? error : new Error(String(error)));
    this.waiting.clear();
    this.worker = null;
  }
}
