/** `/docs`: complete, and a page that asks for nothing else. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { docsPage } from "../../src/http/docs.ts";
import { html } from "../../src/http/html.ts";
import { OPERATIONS } from "../../src/operations/index.ts";
import { startTestApp } from "../support/app.ts";
import { API } from "../support/conforms.ts";

test("the page shows every operation, and its links lead somewhere", () => {
  const page = docsPage(API);
  for (const { http, summary } of OPERATIONS) {
    assert.ok(page.includes(html`${summary}`.text), summary);
    assert.ok(page.replaceAll(/<\/?i>/g, "").includes(`<code>${http.path}</code>`), http.path);
  }
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length, "an id is used twice");
  for (const [, target] of page.matchAll(/ href="#([^"]+)"/g)) assert.ok(ids.includes(target), `#${target}`);
});

test("nothing on the page runs or is fetched, and its policy allows nothing but its style", async (t) => {
  const app = await startTestApp();
  t.after(() => app.stop());
  const { text, headers } = await app.call("GET", "/docs");
  assert.doesNotMatch(text, /<script|<img|<link|<iframe|\bsrc=|\bstyle=|\bon\w+=|url\(|@import/i);
  for (const [, target] of text.matchAll(/ href="([^"]+)"/g)) assert.match(target!, /^(#|\/openapi\.json$)/);
  const [, style] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? [];
  const hash = createHash("sha256").update(style!).digest("base64");
  assert.equal(
    headers.get("content-security-policy"),
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
});

test("what needs no key is read and nothing else", async (t) => {
  const app = await startTestApp();
  t.after(() => app.stop());
  for (const path of ["/docs", "/openapi.json", "/livez", "/readyz", "/metrics"]) {
    const head = await app.call("HEAD", path);
    assert.equal(head.status, 200, path);
    const post = await app.call("POST", path, {});
    assert.equal(post.status, 405, path);
    assert.equal(post.headers.get("allow"), "GET, HEAD", path);
  }
});

test("what is put into HTML is escaped", () => {
  assert.equal(
    html`<b title="${`"'`}">${"<&>"}${html`<i>`}${[1, "&"]}${null}</b>`.text,
    `<b title="&quot;&#39;">&lt;&amp;&gt;<i>1&amp;</b>`,
  );
});
