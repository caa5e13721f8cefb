/** A cron expression in English, for people who read a schedule without knowing cron. */
import cronstrue from "cronstrue";
import { plainFields } from "./cron.ts";

/** "At 09:00, Monday through Friday". For an expression that `checkCron` has passed; hours count from 00 to 23. */
export function describeCron(expression: string): string {
  const fields = plainFields(expression);
  // cronstrue reads two day fields as either-or unless it is told otherwise; the rule is the one in cron.ts.
  const logicalAndDayFields = [fields[2], fields[4]].some((field) => field?.startsWith("*"));
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] = fields.map((field, i) =>
    withStarNamed(withoutRepeats(field), i),
  );
  const weekdays = withoutRepeats(dayOfWeek.replace(/(?<![\d#/-])7(?![\d/-])/g, "0"));
  return cronstrue.toString(`${minute} ${hour} ${dayOfMonth} ${month} ${weekdays}`, {
    use24HourTimeFormat: true,
    logicalAndDayFields,
  });
}

const EVERY_VALUE = ["0-59", "0-23", "1-31", "1-12", "0-6"];

/** An asterisk beside other items is "undefined" to cronstrue, so the values that it stands for are named. */
function withStarNamed(field: string, index: number): string {
  if (!field.includes(",")) return field;
  return field.replace(/(?<![^,])\*(?![^,])/, EVERY_VALUE[index] ?? "*");
}

/** "0,7" would read "on Sunday and Sunday". */
function withoutRepeats(field: string): string {
  return [...new Set(field.split(","))].join(",");
}
