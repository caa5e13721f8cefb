/** Stands in for the network where a test scripts outcomes: every request waits until the test answers it, or a rule does. */
import type { HttpRequest } from "../../src/delivery/request.ts";
import type { Sender } from "../../src/delivery/send.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";

export interface Sent {
  readonly request: HttpRequest;
  readonly origin: string;
  answer(outcome: Outcome): void;
}

/** `rule` answers at once where it answers anything; null leaves the request to the test. */
export class ScriptedSender implements Sender {
  /** Requests that wait for their answer. */
  readonly open = new Set<Sent>();
  readonly sent: Sent[] = [];
  /** The most at once, over all and by origin. */
  peak = 0;
  readonly peaks = new Map<string, number>();
  private readonly rule: (request: HttpRequest) => Outcome | null;

  constructor(rule: (request: HttpRequest) => Outcome | null = () => null) {
    this.rule = rule;
  }

  send(request: HttpRequest, _timeoutMs: number, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const { origin } = new URL(request.url);
      const one: Sent = {
        request,
        origin,
        answer: (outcome) => {
          this.open.delete(one);
          resolve(outcome);
        },
      };
      this.sent.push(one);
      this.open.add(one);
      this.peak = Math.max(this.peak, this.open.size);
      const here = [...this.open].filter((other) => other.origin === origin).length;
      this.peaks.set(origin, Math.max(this.peaks.get(origin) ?? 0, here));
      signal.addEventListener("abort", () => {
        this.open.delete(one);
        reject(signal.reason);
      });
      const outcome = this.rule(request);
      if (outcome !== null) one.answer(outcome);
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
