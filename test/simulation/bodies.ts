/** What the target answers, and what each step of a pipeline has to send because of that: an oracle of its own. */
import type { NewJob } from "../../src/jobs/job.ts";

/** The payload of every job that has one. */
export const INPUT_TEXT = '{"n":1.0}';
const INPUT_PARTS: Readonly<Record<string, string>> = { "": INPUT_TEXT, "/n": "1.0" };

/** An answer that nobody else gets. Its numbers are lost by whoever parses and prints it. */
export function answerTo(exchange: string): string {
  return `{"to":"${exchange}","list":[1,{"deep~/":2.0}]}`;
}

function partsOf(exchange: string): Readonly<Record<string, string>> {
  return {
    "": answerTo(exchange),
    "/to": `"${exchange}"`,
    "/list/1": '{"deep~/":2.0}',
    "/list/1/deep~0~1": "2.0",
  };
}

/** Where the references of random steps point to: all but the last find something. */
export const POINTERS = ["", "/to", "/list/1", "/list/1/deep~0~1", "/list/2"] as const;

const REFERENCE = /\{"\$from":"([^"#]+)#([^"]*)"\}/g;

/** The body that a step has to send: null for none; or that it cannot be made, since a reference finds nothing. */
export type Expected = { readonly body: string | null } | "unresolved";

/** `answered` is the exchange that ended step number so-and-so. */
export function expectedBody(job: NewJob, step: number, answered: (step: number) => string): Expected {
  const payload = job.steps[step]?.payload?.text ?? null;
  if (payload === null)
    return { body: step === 0 ? (job.payload?.text ?? null) : answerTo(answered(step - 1)) };
  let isWhole = true;
  const body = payload.replace(REFERENCE, (_all, source: string, pointer: string) => {
    const part = partOf(job, source, pointer, answered);
    if (part === undefined) isWhole = false;
    return part ?? "";
  });
  return isWhole ? { body } : "unresolved";
}

function partOf(job: NewJob, source: string, pointer: string, answered: (step: number) => string) {
  if (source === "input") return job.payload === null ? undefined : INPUT_PARTS[pointer];
  return partsOf(answered(job.steps.findIndex(({ name }) => name === source)))[pointer];
}
