/** What Errand can do: the one list that every door is made from. */
import { accountOperations } from "./account.ts";
import { eventOperations } from "./events.ts";
import { jobOperations } from "./jobs.ts";
import { bulkOperations } from "./jobs-bulk.ts";
import type { Operation } from "./operation.ts";
import { scheduleOperations } from "./schedules.ts";

export const OPERATIONS: readonly Operation[] = [
  ...jobOperations,
  ...bulkOperations,
  ...scheduleOperations,
  ...accountOperations,
  ...eventOperations,
];
