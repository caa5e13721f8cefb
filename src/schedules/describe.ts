/** A cron expression in English, for people who read a schedule without knowing cron. */
import cronstrue from "cronstrue";
import { plainFields } from "./cron.ts";

/** "At 09:00, Monday through Friday". For an expression that `checkCron` has passed; hours count from 00 to 23. */
export function describeCron(expression: string): string {
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] =
    plainFields(expression).map(withoutRepeats);
  // cronstrue reads two day fields as either-or unless it is told otherwise; the rule is the one in cron.ts.
  const logicalAndDayFields = dayOfMonth.startsWith("*") || dayOfWeek.startsWith("*");
  const weekdays = withoutRepeats(dayOfWeek.replace(/(?<![\d#/-])7(?![\d/-])/g, "0"));
  return cronstrue.toString(`${minute} ${hour} ${dayOfMonth} ${month} ${weekdays}`, {
    use24HourTimeFormat: true,
    logicalAndDayFields,
  });
}

/** "0,7" would read "on Sunday and Sunday". */
function withoutRepeats(field: string): string {
  return [...new Set(field.split(","))].join(",");
}
