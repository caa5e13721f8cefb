/** `/openapi.json` and `/docs`: what the API is, for programs and for people. */
import { createHash } from "node:crypto";
import type { Hono } from "hono";
import type { Operation } from "../operations/operation.ts";
import { DOCS_STYLE, docsPage } from "./docs.ts";
import type { HttpEnv } from "./env.ts";
import { describeApi } from "./openapi.ts";

/** The page may use its own style sheet, known by its hash, and nothing else: no script, no image, no request. */
const STYLE_HASH = createHash("sha256").update(DOCS_STYLE).digest("base64");
const DOCS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${STYLE_HASH}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function mountReference(app: Hono<HttpEnv>, operations: readonly Operation[], version: string): void {
  // Made when it is first asked for: a start does not pay for it.
  let made: { json: string; page: string } | undefined;
  const reference = () => {
    if (made !== undefined) return made;
    const api = describeApi(operations, version);
    made = { json: JSON.stringify(api, null, 2), page: docsPage(api) };
    return made;
  };
  app.get("/openapi.json", (c) => c.body(reference().json, 200, { "content-type": "application/json" }));
  app.get("/docs", (c) => {
    c.env.outgoing.setHeader("Content-Security-Policy", DOCS_POLICY);
    return c.html(reference().page);
  });
}
