/** The guard where the socket connects: names that change their mind, literals in every spelling, redirects of the mind. */
import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { type TestContext, test } from "node:test";
import { type Range, rangeOf } from "../../src/delivery/address.ts";
import type { Lookup } from "../../src/delivery/connect.ts";
import { egressRules } from "../../src/delivery/egress.ts";
import { attempts, inShort, LISTENING } from "./attempts.ts";
import { LOOPBACK_HOSTS } from "./loopback-hosts.ts";
import { OK, type RawTarget, rawTarget } from "./raw-target.ts";

const CLOSE = OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
const PUBLIC: LookupAddress = { address: "127.0.0.1", family: 4 };
const INNER: LookupAddress = { address: "127.0.0.2", family: 4 };

/** In these tests 127.0.0.1 stands for the internet, and 127.0.0.2 for a machine inside. */
const RULES = egressRules({ deny: ["127.0.0.2"], allow: [], listening: LISTENING });

/** Two targets on one port: the outer one and the one that must never hear anything. */
async function twoTargets(t: TestContext): Promise<{ outer: RawTarget; inner: RawTarget }> {
  const outer = await rawTarget(t, (socket) => socket.write(CLOSE));
  const inner = await rawTarget(t, (socket) => socket.write(CLOSE), { host: "127.0.0.2", port: outer.port });
  return { outer, inner };
}

test("DNS rebinding: a name that turns to an inner address reaches it in none of 200 attempts", async (t) => {
  const { outer, inner } = await twoTargets(t);
  let count = 0;
  const alternating: Lookup = (_hostname, done) => {
    count += 1;
    setImmediate(() => done(null, [count % 2 === 0 ? INNER : PUBLIC]));
  };
  const sending = attempts(t, RULES, alternating);
  const seen = new Map<number | string, number>();
  for (let i = 0; i < 200; i++) {
    const outcome = await sending.attempt(`http://rebinding.example:${outer.port}/`);
    seen.set(outcome.code, (seen.get(outcome.code) ?? 0) + 1);
    if (outcome.kind === "failure") {
      const message = `rebinding.example:${outer.port} resolves to an address that ERRAND_EGRESS_DENY forbids`;
      assert.equal(outcome.message, message);
    }
  }
  assert.deepEqual(
    seen,
    new Map<number | string, number>([
      [200, 100],
      ["blocked_target", 100],
    ]),
  );
  assert.equal(inner.connections.length, 0);
  assert.equal(outer.connections.length, 100);
});

test("of several addresses only those that may be called are tried", async (t) => {
  const { outer, inner } = await twoTargets(t);
  const answers: Record<string, LookupAddress[]> = {
    "first.example": [INNER, PUBLIC],
    "last.example": [PUBLIC, INNER],
    "none.example": [
      INNER,
      { address: "169.254.169.254", family: 4 },
      { address: "::ffff:7f00:2", family: 6 },
    ],
    "closed.example": [INNER, { address: "127.0.0.3", family: 4 }],
  };
  const sending = attempts(t, RULES, (hostname, done) => done(null, answers[hostname] ?? []));
  const short = async (name: string): Promise<number | string> =>
    inShort(await sending.attempt(`http://${name}:${outer.port}/`));
  assert.equal(await short("first.example"), 200);
  assert.equal(await short("last.example"), 200);
  assert.equal(await short("none.example"), "blocked_target");
  assert.equal(await short("closed.example"), "connect");
  assert.equal(inner.connections.length, 0);
});

test("no spelling of a refused address opens a connection, over http or https", async (t) => {
  const target = await rawTarget(t, (socket) => socket.write(OK));
  const target6 = await rawTarget(t, (socket) => socket.write(OK), { host: "::1", port: target.port });
  const rules = egressRules({ deny: ["private"], allow: [], listening: LISTENING });
  const asked: string[] = [];
  const sending = attempts(t, rules, (hostname, done) => {
    asked.push(hostname);
    done(null, [PUBLIC, { address: "::1", family: 6 }]);
  });
  for (const host of [...LOOPBACK_HOSTS, "localhost", "localhost.", "any.example"]) {
    for (const scheme of ["http", "https"]) {
      const outcome = await sending.attempt(`${scheme}://${host}:${target.port}/`);
      assert.equal(outcome.code, "blocked_target", `${scheme} ${host}`);
    }
  }
  assert.deepEqual(new Set(asked), new Set(["localhost", "localhost.", "any.example"]));
  assert.equal(target.connections.length + target6.connections.length, 0);
});

test("Errand never calls itself, by address or by name, while the same port elsewhere may be called", async (t) => {
  const { outer } = await twoTargets(t);
  const rules = egressRules({
    deny: [],
    allow: ["127.0.0.2"],
    listening: { host: "127.0.0.1", port: outer.port },
  });
  const sending = attempts(t, rules, (_hostname, done) => done(null, [PUBLIC]));
  for (const host of ["127.0.0.1", "localhost", "own.example", "[::ffff:127.0.0.1]"]) {
    const outcome = await sending.attempt(`http://${host}:${outer.port}/`);
    assert.ok(outcome.kind === "failure");
    assert.equal(outcome.code, "blocked_target");
    assert.match(outcome.message, /Errand's own address and port/);
  }
  assert.equal(outer.connections.length, 0);
  assert.equal(inShort(await sending.attempt(`http://127.0.0.2:${outer.port}/`)), 200);
});

test("a redirect into the inner network is an answer like any other", async (t) => {
  const inner = await rawTarget(t, (socket) => socket.write(OK), { host: "127.0.0.2" });
  const answer = `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${inner.url}\r\ncontent-length: 0\r\n\r\n`;
  const outer = await rawTarget(t, (socket) => socket.write(answer));
  const sending = attempts(t);
  assert.equal(inShort(await sending.attempt(outer.url)), 307);
  assert.equal(inner.connections.length, 0);
});

test("what the socket connected to is looked at once more", async (t) => {
  const target = await rawTarget(t, (socket) => socket.write(OK));
  // The rules change behind the back of the lookup, as no defect there could be told apart from.
  const deny: Range[] = [];
  const sending = attempts(t, { ...RULES, deny }, (_hostname, done) => {
    done(null, [PUBLIC]);
    deny.push(rangeOf("127.0.0.1"));
  });
  assert.equal(inShort(await sending.attempt(`http://late.example:${target.port}/`)), "blocked_target");
  assert.equal(target.requests.length, 0);
});
