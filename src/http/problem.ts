/** Errors as `application/problem+json` (RFC 9457). What is not a Problem becomes 500, its detail in the log only. */
import { PROBLEMS, Problem } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";

export const PROBLEM_JSON = "application/problem+json";

/** The document of a problem, as users see it. */
export function problemDocument(problem: Problem, requestId: string) {
  const { code } = problem;
  return {
    type: "about:blank",
    title: PROBLEMS[code].title,
    status: PROBLEMS[code].status,
    detail: problem.message,
    code,
    request_id: requestId,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
  };
}

export function problemResponse(error: unknown, requestId: string, log: Logger): Response {
  const problem = problemOf(error, requestId, log);
  return new Response(JSON.stringify(problemDocument(problem, requestId)), {
    status: problem.status,
    headers: { "content-type": PROBLEM_JSON, ...problem.headers },
  });
}

/** The error itself when it is meant for users; else an `internal_error`, and the error goes to the log. */
export function problemOf(error: unknown, requestId: string, log: Logger): Problem {
  if (error instanceof Problem) return error;
  log.error({ err: error, request_id: requestId }, "a request failed");
  return new Problem(
    "internal_error",
    "Something went wrong in Errand. The log has the details under this request_id.",
  );
}
