/** Figures taken in rounds in which the contestants take turns, so that what slows the machine slows them all. */
import { median } from "./load.ts";
import { say } from "./say.ts";

export const ROUNDS = 3;

export interface Figure {
  readonly perSecond: number;
  /** CPU seconds per 1,000 of what was counted. */
  readonly cpu: number;
}

/** One list of figures for each run, in their order. Each has one round before that, to warm up, which does not count. */
export async function inTurns(...runs: readonly (() => Promise<Figure>)[]): Promise<Figure[][]> {
  const figures: Figure[][] = runs.map(() => []);
  for (const run of runs) await run();
  for (let i = 0; i < ROUNDS; i++) {
    for (const [n, run] of runs.entries()) figures[n]!.push(await run());
  }
  return figures;
}

/** The same number of rounds of what has no baseline: the median of each figure that they answer. */
export async function medians<Name extends string>(
  round: () => Promise<Readonly<Record<Name, number>>>,
): Promise<Readonly<Record<Name, number>>> {
  const rounds: Readonly<Record<Name, number>>[] = [];
  for (let i = 0; i < ROUNDS; i++) rounds.push(await round());
  const names = Object.keys(rounds[0] ?? {}) as Name[];
  const figures = names.map((name) => [name, median(rounds.map((one) => one[name]))]);
  return Object.fromEntries(figures) as Record<Name, number>;
}

/** Says both medians and Errand's ratios to the baseline. */
export function compare(
  [baseline, theirs]: readonly [string, readonly Figure[]],
  [errand, ours]: readonly [string, readonly Figure[]],
  target: string,
): void {
  sayFigure(baseline, theirs);
  sayFigure(errand, ours);
  say("ratio of rates", (rateOf(ours) / rateOf(theirs)).toFixed(2), target);
  say("ratio of CPU", (cpuOf(ours) / cpuOf(theirs)).toFixed(2));
}

export function sayFigure(what: string, figures: readonly Figure[]): void {
  say(what, `${rateOf(figures).toFixed(0)}/s`, `${cpuOf(figures).toFixed(3)} CPU s per 1,000`);
}

export const rateOf = (figures: readonly Figure[]) => median(figures.map((one) => one.perSecond));
export const cpuOf = (figures: readonly Figure[]) => median(figures.map((one) => one.cpu));
