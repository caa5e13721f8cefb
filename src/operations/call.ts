/** One call of an operation, whichever door it came through: checked, done once per idempotency key, answered. */
import { createHash } from "node:crypto";
import type { Principal } from "../accounts/account.ts";
import { stringify } from "../base/json.ts";
import type { StoredAnswer } from "../store/store.ts";
import { checkInput } from "./faults.ts";
import { type Operation, Replay, type Services, Stream } from "./operation.ts";

export interface Call {
  readonly services: Services;
  readonly principal: Principal;
  /** `Idempotency-Key`, checked with {@link isIdempotencyKey}. It counts for operations that create. */
  readonly idempotencyKey: string | null;
  /** Aborted when the caller is gone or the service stops. */
  readonly signal: () => AbortSignal;
}

export interface Answered {
  readonly answer: StoredAnswer;
  /** The answer is that of an earlier call with the same idempotency key. */
  readonly replayed: boolean;
}

/** Throws a Problem when the input is wrong or the operation cannot be done. The door has checked key and scope. */
export async function callOperation(
  operation: Operation,
  given: unknown,
  call: Call,
): Promise<Answered | Stream> {
  const { services, principal, idempotencyKey } = call;
  const input = checkInput(operation, given);
  const idempotency =
    operation.creates === true && idempotencyKey !== null
      ? {
          key: idempotencyKey,
          fingerprint: fingerprint(operation, given),
          answer: (output: unknown) => answerOf(operation, output),
        }
      : null;
  const context = {
    ...services,
    principal,
    idempotency,
    signal: call.signal,
  };
  const output = await operation.run(context, input);
  if (output instanceof Stream) return output;
  return output instanceof Replay
    ? { answer: output.answer, replayed: true }
    : { answer: answerOf(operation, output), replayed: false };
}

/** draft-ietf-httpapi-idempotency-key-header leaves the form open; Errand takes 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(key: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(key);
}

export const IDEMPOTENCY_KEY_FORM = "has to have 1 to 255 visible ASCII characters";

/** What the REST API says to an output: also what is kept to be repeated. */
function answerOf({ http }: Operation, output: unknown): StoredAnswer {
  const status = typeof http.status === "number" ? http.status : http.status(output);
  const headers: Record<string, string> = {};
  if (http.location !== undefined) headers["Location"] = http.location(output);
  return { status, headers, body: output === null ? "" : stringify(output) };
}

function fingerprint(operation: Operation, given: unknown): string {
  return createHash("sha256")
    .update(`${operation.name}\n${stringify(given)}`)
    .digest("base64");
}
