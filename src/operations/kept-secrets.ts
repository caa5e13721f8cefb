/** Secret headers read back as `***`; who sends that again, with the rest of what was read, means the secret that is stored. */
import type { InvalidField } from "../base/errors.ts";
import type { JobTemplate } from "../jobs/job.ts";
import type { Headers } from "../jobs/outcome.ts";
import { isSecretHeader, MASK } from "../jobs/secret-headers.ts";
import { invalidFields } from "./faults.ts";

/** The template with every mask put back to what `before` has there. Throws a 422 Problem where there is nothing. */
export function keepSecrets(job: JobTemplate, before: JobTemplate | null): JobTemplate {
  const faults: InvalidField[] = [];
  const unmask = (headers: Headers, stored: Headers | undefined, at: string): Headers =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        if (value !== MASK || !isSecretHeader(name)) return [name, value];
        const kept = stored === undefined ? undefined : valueOf(stored, name);
        if (kept === undefined) {
          const detail = `is ${MASK}, which stands for a stored secret, and none is stored; give the secret itself`;
          faults.push({ pointer: `${at}/${name}`, detail });
        }
        return [name, kept ?? value];
      }),
    );
  const unmasked = {
    ...job,
    target:
      job.target === null
        ? null
        : { ...job.target, headers: unmask(job.target.headers, before?.target?.headers, "/headers") },
    steps: job.steps.map((step, i) => {
      const stored = before?.steps.find(({ name }) => name === step.name)?.headers;
      return { ...step, headers: unmask(step.headers, stored, `/steps/${i}/headers`) };
    }),
  };
  if (faults.length > 0) throw invalidFields(faults);
  return unmasked;
}

/** Header names do not differ by case. */
function valueOf(headers: Headers, name: string): string | undefined {
  return Object.entries(headers).find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1];
}
