/** Requests that are sent ahead on one connection: how many may wait is counted anew with each answer. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { inTurn } from "../../src/http/in-turn.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("a client that reads may send ahead for as long as it likes", async (t) => {
  let answered = 0;
  const server = createServer(
    inTurn((_incoming, outgoing) => {
      answered += 1;
      // For each answer one more is sent, so that there are always about fifty ahead of it.
      if (answered < 500) client.write(REQUEST);
      else client.end();
      setImmediate(() => outgoing.end());
    }),
  );
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write(REQUEST.repeat(50));
  client.resume();
  await once(client, "close");
  assert.ok(answered >= 500, `cut off after ${answered}`);
});
