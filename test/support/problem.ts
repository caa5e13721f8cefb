/** What every error has to look like, whichever it is. */
import assert from "node:assert/strict";
import { PROBLEMS } from "../../src/base/errors.ts";
import type { Answer } from "./app.ts";

export function assertProblem(answer: Answer<any>, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  assert.equal(answer.body.code, code, answer.text);
  assert.equal(answer.body.status, status);
  assert.equal(answer.body.title, PROBLEMS[code as keyof typeof PROBLEMS].title);
  assert.equal(answer.body.type, "about:blank");
  assert.equal(answer.body.request_id, answer.headers.get("x-request-id"));
  assert.ok(answer.body.detail.length > 10);
}
