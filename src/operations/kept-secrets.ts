/** Secret headers read back as `***`; who sends that again, with the rest of what was read, means the secret that is stored. */
import type { InvalidField } from "../base/errors.ts";
import { knownUrl } from "../base/url.ts";
import type { JobTemplate } from "../jobs/job.ts";
import type { Headers } from "../jobs/outcome.ts";
import { isSecretHeader, MASK } from "../jobs/secret-headers.ts";
import { invalidFields } from "./faults.ts";

interface Target {
  readonly url: string;
  readonly headers: Headers;
}

/**
 * The template with every mask put back to what `before` has there. Throws a 422 Problem where there is nothing, and
 * where the URL is of another origin now: who may change a schedule could else have its secrets sent to himself.
 */
export function keepSecrets(job: JobTemplate, before: JobTemplate | null): JobTemplate {
  const faults: InvalidField[] = [];
  const unmask = ({ url, headers }: Target, stored: Target | undefined, at: string): Headers =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        if (value !== MASK || !isSecretHeader(name)) return [name, value];
        const kept = stored === undefined ? undefined : valueOf(stored.headers, name);
        const fault = kept === undefined ? NOTHING_STORED : otherOrigin(stored?.url ?? url, url);
        if (fault !== null) faults.push({ pointer: `${at}/${name}`, detail: fault });
        return [name, kept ?? value];
      }),
    );
  const unmasked = {
    ...job,
    target:
      job.target === null
        ? null
        : { ...job.target, headers: unmask(job.target, before?.target ?? undefined, "/headers") },
    steps: job.steps.map((step, i) => {
      const stored = before?.steps.find(({ name }) => name === step.name);
      return { ...step, headers: unmask(step, stored, `/steps/${i}/headers`) };
    }),
  };
  if (faults.length > 0) throw invalidFields(faults);
  return unmasked;
}

const NOTHING_STORED = `is ${MASK}, which stands for a stored secret, and none is stored; give the secret itself`;

function otherOrigin(stored: string, url: string): string | null {
  const { origin } = knownUrl(stored);
  return knownUrl(url).origin === origin
    ? null
    : `is a secret that is stored for ${origin}, and the URL is of another origin now; give the secret itself`;
}

/** Header names do not differ by case. */
function valueOf(headers: Headers, name: string): string | undefined {
  return Object.entries(headers).find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1];
}
