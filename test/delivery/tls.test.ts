/** Targets over TLS: the ones to be trusted, and every kind that is not. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import { after, before, type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates, type TlsOptions } from "node:tls";
import { type Attempts, attempts, OPEN_RULES } from "./attempts.ts";
import { newCertificate } from "./certificate.ts";
import { type Answer, OK, rawTarget } from "./raw-target.ts";

const authority = newCertificate({ name: "Errand test authority" });
const stranger = newCertificate({ name: "Unknown authority" });
const HOSTS = ["127.0.0.1", "good.example"];
const good = newCertificate({ name: "good", hosts: HOSTS, issuer: authority });

const defaults = getCACertificates("default");
before(() => setDefaultCACertificates([...defaults, authority.cert]));
after(() => setDefaultCACertificates(defaults));

/** All names are this machine. */
function sendingHere(t: TestContext): Attempts {
  return attempts(t, OPEN_RULES, (_hostname, done) => done(null, [{ address: "127.0.0.1", family: 4 }]));
}

test("a certificate that holds: by address and by name, with or without a trailing dot, over one connection each", async (t) => {
  const names: (string | false | undefined)[] = [];
  const target = await rawTarget(
    t,
    (socket) => {
      names.push("servername" in socket ? (socket.servername as string | false) : undefined);
      socket.write(OK);
    },
    { tls: good },
  );
  const sending = sendingHere(t);
  for (const host of ["127.0.0.1", "good.example", "good.example."]) {
    for (let i = 0; i < 3; i++) {
      const outcome = await sending.attempt(`https://${host}:${target.port}/`);
      assert.equal(outcome.code, 200, JSON.stringify(outcome));
    }
  }
  assert.equal(target.connections.length, 3);
  assert.deepEqual(new Set(names), new Set([false, "good.example"]));
});

const TABLE: readonly { name: string; tls: TlsOptions; message: RegExp }[] = [
  {
    name: "a self-signed certificate",
    tls: newCertificate({ name: "self", hosts: HOSTS }),
    message: /self-signed/,
  },
  {
    name: "an expired certificate",
    tls: newCertificate({ name: "old", hosts: HOSTS, issuer: authority, until: "210101000000Z" }),
    message: /expired/,
  },
  {
    name: "a certificate of the future",
    tls: newCertificate({ name: "new", hosts: HOSTS, issuer: authority, from: "480101000000Z" }),
    message: /not valid yet/,
  },
  {
    name: "a certificate for another name",
    tls: newCertificate({ name: "other", hosts: ["other.example"], issuer: authority }),
    message: /another name/,
  },
  {
    name: "a certificate of an unknown authority",
    tls: newCertificate({ name: "strange", hosts: HOSTS, issuer: stranger }),
    message: /not signed by a trusted authority/,
  },
  {
    name: "only TLS 1.1",
    tls: { ...good, minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" },
    message: /TLS/,
  },
];

for (const { name, tls, message } of TABLE) {
  test(`a target with ${name}: tls`, async (t) => {
    const target = await rawTarget(t, (socket) => socket.write(OK), { tls });
    const sending = sendingHere(t);
    for (const host of ["127.0.0.1", "good.example"]) {
      const outcome = await sending.attempt(`https://${host}:${target.port}/`);
      assert.ok(outcome.kind === "failure", JSON.stringify(outcome));
      assert.equal(outcome.code, "tls", outcome.message);
      assert.match(outcome.message, message);
      await target.allClosed();
    }
    assert.equal(target.requests.length, 0);
  });
}

const HANDSHAKES: readonly { name: string; answer: Answer; code: string; message: RegExp }[] = [
  {
    name: "answers in plain HTTP",
    answer: (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"),
    code: "tls",
    message: /did not answer in TLS/,
  },
  {
    name: "hangs up in the handshake",
    answer: (socket) => socket.end(),
    code: "tls",
    message: /closed the connection during the TLS handshake/,
  },
  {
    name: "resets in the handshake",
    answer: (socket) => socket.resetAndDestroy(),
    code: "tls",
    message: /closed the connection during the TLS handshake/,
  },
  {
    name: "says nothing in the handshake",
    answer: () => {},
    code: "timeout",
    message: /did not finish the TLS handshake within 200 ms/,
  },
];

for (const { name, answer, code, message } of HANDSHAKES) {
  test(`a target that ${name}: ${code}`, async (t) => {
    const sending = sendingHere(t);
    const target = await rawTarget(t, answer, { isHttp: false });
    const timeoutMs = code === "timeout" ? 200 : 5_000;
    const outcome = await sending.attempt(`https://127.0.0.1:${target.port}/`, { timeoutMs });
    assert.ok(outcome.kind === "failure", JSON.stringify(outcome));
    assert.equal(outcome.code, code, outcome.message);
    assert.match(outcome.message, message);
    await target.allClosed();
  });
}

test("a target that speaks only HTTP/2: invalid_response", async (t) => {
  const server = createSecureServer({ cert: good.cert, key: good.key });
  server.on("sessionError", () => {});
  server.on("error", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  const sending = sendingHere(t);
  const outcome = await sending.attempt(`https://127.0.0.1:${typeof bound === "object" ? bound?.port : 0}/`);
  assert.equal(outcome.code, "invalid_response", JSON.stringify(outcome));
  server.close();
});

test("an http URL whose target speaks TLS: reset or invalid_response, whichever it answers with", async (t) => {
  const sending = sendingHere(t);
  const target = await rawTarget(t, (socket) => socket.write(OK), { tls: good });
  const outcome = await sending.attempt(`http://127.0.0.1:${target.port}/`);
  assert.ok(["reset", "invalid_response"].includes(String(outcome.code)), JSON.stringify(outcome));
});
