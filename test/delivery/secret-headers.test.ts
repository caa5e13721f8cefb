/** Which header names are taken for secrets, and which look like it and are none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isSecretHeader } from "../../src/jobs/secret-headers.ts";

const SECRET = `
  authorization Authorization proxy-authorization cookie Set-Cookie set-cookie2
  x-forwarded-authorization x-api-key X-API-Key api-key apikey x-apikey dd-api-key x-goog-api-key
  x-rapidapi-key x-functions-key ocp-apim-subscription-key x-access-key x-auth-key x-signing-key
  x_api_key x-auth x-auth-token token x-gitlab-token private-token x-vault-token
  x-amz-security-token x-shopify-access-token x-csrf-token x-jwt x-hasura-admin-secret
  x-client-secret x-secret-key x-password stripe-signature x-hub-signature-256 x-credential
`
  .trim()
  .split(/\s+/);
const OPEN = `
  content-type accept user-agent etag location date server x-request-id retry-after link
  idempotency-key surrogate-key x-partition-key x-cache-key x-key-count sec-websocket-key
  www-authenticate x-ratelimit-remaining-tokens x-token-count x-author authority x-tokenizer
  cookie-policy webhook-id
`
  .trim()
  .split(/\s+/);

test("secret-bearing headers are known by their names", () => {
  for (const name of SECRET) assert.equal(isSecretHeader(name), true, name);
  for (const name of OPEN) assert.equal(isSecretHeader(name), false, name);
});
