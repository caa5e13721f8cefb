/** A hundred hostile targets beside the built executable. Needs `npm run build:sea`. */
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { withstandsHostileTargets } from "../faults/hostile-targets.ts";

test("a hundred hostile targets at once", (t) =>
  withstandsHostileTargets(t, { command: [fileURLToPath(new URL("../../dist/errand", import.meta.url))] }));
