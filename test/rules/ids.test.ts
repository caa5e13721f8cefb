/** TypeIDs: form, order, uniqueness. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { isId, newId } from "../../src/base/ids.ts";

/** Far ahead of the other tests of this process: ids never go back in time. */
const LATER = Date.parse("2400-01-01T00:00:00Z");

test("ids have the form of TypeID 0.3 over a UUIDv7", () => {
  const ms = Date.parse("2026-11-21T00:00:00Z");
  const id = newId("job", ms);
  assert.match(id, /^job_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
  const bits = Array.from(id.slice(4))
    .map((char) => "0123456789abcdefghjkmnpqrstvwxyz".indexOf(char).toString(2).padStart(5, "0"))
    .join("")
    .slice(2);
  assert.equal(Number.parseInt(bits.slice(0, 48), 2), ms);
  assert.equal(Number.parseInt(bits.slice(48, 52), 2), 7, "version");
  assert.equal(bits.slice(64, 66), "10", "variant");
});

test("ids sort in the order of creation and are unique, many in a millisecond and when the clock goes back", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 3 }), { minLength: 1, maxLength: 50 }), (steps) => {
      let now = LATER;
      const ids = steps.map((step) => newId("job", (now += step)));
      assert.deepEqual(ids, ids.toSorted());
      assert.equal(new Set(ids).size, ids.length);
    }),
  );
  const many = Array.from({ length: 20_000 }, () => newId("job", LATER));
  assert.deepEqual(many, many.toSorted());
  assert.equal(new Set(many).size, many.length);
});

test("only what has the form is an id of its kind", () => {
  const id = newId("job", LATER);
  assert.ok(isId("job", id));
  for (const wrong of [
    id.slice(0, -1),
    `${id}0`,
    id.toUpperCase(),
    id.replace("job", "sch"),
    `job_8${id.slice(5)}`,
    "job_",
    "",
    `job_${"u".repeat(26)}`,
  ])
    assert.ok(!isId("job", wrong), wrong);
});
