/** The SQLite adapter keeps what store.ts promises. */
import { after, describe } from "node:test";
import { VirtualClock } from "../support/clock.ts";
import { addAccount, openTestStore, type TestStore } from "../support/store.ts";
import { engineConformance } from "./conformance-engine.ts";
import { jobConformance } from "./conformance-jobs.ts";
import { accountConformance, queueConformance, scheduleConformance } from "./conformance-rest.ts";

describe("SQLite", () => {
  const opened: TestStore[] = [];
  after(async () => {
    for (const one of opened) await one.close();
  });

  /** A fresh store with two accounts. */
  async function open() {
    const clock = new VirtualClock();
    const one = await openTestStore({ clock });
    opened.push(one);
    await addAccount(one.store, "acct_other", clock.now());
    return one.store;
  }

  jobConformance(open);
  engineConformance(open);
  scheduleConformance(open);
  queueConformance(open);
  accountConformance(open);
});
