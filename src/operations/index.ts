/** What Errand can do: the one list that every door is made from. */
import { accountOperations } from "./account.ts";
import { eventOperations } from "./events.ts";
import { jobOperations } from "./jobs.ts";
import { bulkOperations } from "./jobs-bulk.ts";
import { keyOperations } from "./keys.ts";
import type { Operation } from "./operation.ts";
import { queueOperations } from "./queues.ts";
import { scheduleOperations } from "./schedules.ts";
import { signingSecretOperations } from "./signing-secrets.ts";
import { usageOperations } from "./usage.ts";

export const OPERATIONS: readonly Operation[] = [
  ...jobOperations,
  ...bulkOperations,
  ...scheduleOperations,
  ...queueOperations,
  ...usageOperations,
  ...accountOperations,
  ...eventOperations,
  ...keyOperations,
  ...signingSecretOperations,
];
