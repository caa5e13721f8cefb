/** Targets that Errand may not call are refused when the URL alone shows it; the rest is decided when it connects. */
import { Problem } from "../base/errors.ts";
import { knownUrl } from "../base/url.ts";
import type { Context } from "./operation.ts";

/** Throws `blocked_target` with the pointer of each URL that the egress rules forbid. */
export function refuseBlocked(context: Context, urls: readonly { pointer: string; url: string }[]): void {
  const errors = urls.flatMap(({ pointer, url }) => {
    const refusal = context.refusalOfUrl(knownUrl(url));
    return refusal === null ? [] : [{ pointer, detail: refusal }];
  });
  if (errors.length === 0) return;
  throw new Problem(
    "blocked_target",
    `Errand may not call this address: ${errors[0]?.detail}. ERRAND_EGRESS_ALLOW can name it.`,
    { errors },
  );
}
