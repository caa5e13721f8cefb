/** Signatures against the reference library, and against a value worked out by hand. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { systemClock } from "../../src/base/clock.ts";
import { signWebhook } from "../../src/delivery/signature.ts";

const nowS = Math.floor(systemClock.now() / 1_000);
const newSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`;

test("the reference library verifies every body, as text and as bytes", () => {
  const secret = newSecret();
  const texts = ["", "{}", '{"a":1.0}', '{"name":"Jürgen 🚀"}', "x".repeat(1024 * 1024), " \r\n\u0000"];
  for (const text of texts) {
    for (const body of [text, Buffer.from(text)]) {
      const signature = signWebhook([secret], "job_1-2", nowS, body);
      const headers = {
        "webhook-id": "job_1-2",
        "webhook-timestamp": String(nowS),
        "webhook-signature": signature,
      };
      new Webhook(secret).verify(text, headers, { jsonParse: false });
    }
  }
  assert.equal(signWebhook([secret], "job_1", nowS, null), signWebhook([secret], "job_1", nowS, ""));
});

test("bytes that are not UTF-8 are signed as they are", () => {
  const secret = newSecret();
  assert.notEqual(
    signWebhook([secret], "job_1", nowS, new Uint8Array([0xff])),
    signWebhook([secret], "job_1", nowS, new Uint8Array([0xfe])),
  );
});

test("the example of the specification", () => {
  const signature = signWebhook(
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
    '{"test": 2432232314}',
  );
  assert.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test("while secrets are rotated both sign, the newest first, and either one verifies", () => {
  const secrets = [newSecret(), newSecret()];
  const signature = signWebhook(secrets, "job_1", nowS, "{}");
  const parts = signature.split(" ");
  assert.equal(parts.length, 2);
  assert.equal(parts[0], signWebhook(secrets.slice(0, 1), "job_1", nowS, "{}"));
  const headers = {
    "webhook-id": "job_1",
    "webhook-timestamp": String(nowS),
    "webhook-signature": signature,
  };
  for (const secret of secrets) new Webhook(secret).verify("{}", headers);
  assert.throws(() => new Webhook(newSecret()).verify("{}", headers));
});
