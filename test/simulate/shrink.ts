import type { Conditions, Happening, History } from "./history.ts";

/** Runs that a reduction may take: some of them last as long as the whole history. */
const RUNS_MAX = 600;

/** The calmest conditions: what a history fails without does not matter for its failure. */
const CALM: Readonly<Record<keyof Conditions, Conditions[keyof Conditions]>> = {
  collections: true,
  pages: false,
  keys: false,
  strictList: false,
  skewMs: 0,
  settleMs: 150,
  concurrency: 4,
  rescanMinutes: 60,
  requestTimeoutMs: 30_000,
  slowDiskMs: 0.02,
  slowNetMs: 5,
  workMs: 0,
  auditHours: 0,
  mode: "run",
  strangers: false,
  listLagMs: 0,
  normalisation: undefined,
  reads: undefined,
  lateMs: 0,
  slow: undefined,
  coarseMs: 0,
  second: undefined,
  nested: undefined,
  joins: undefined,
  git: undefined,
  additive: undefined,
  statusEveryMs: undefined,
  waitEveryMs: undefined,
  mounted: undefined,
  metadataFromMs: undefined,
  isLostAtRest: undefined,
  hostility: undefined,
};

/**
 * Leaves out of a failing history whatever it fails without: happenings by halves, quarters and so on (delta debugging),
 * then conditions. `fails` runs a history and says whether it fails in the same way.
 */
export async function shrink(
  history: History,
  fails: (history: History) => Promise<boolean>,
): Promise<History> {
  let runs = 0;
  let least = history;
  const attempt = async (next: History): Promise<boolean> => {
    if (runs >= RUNS_MAX) return false;
    runs += 1;
    if (!(await fails(next))) return false;
    least = next;
    return true;
  };
  const without = (from: number, count: number): readonly Happening[] =>
    least.happenings.filter(({ isGiven }, at) => isGiven === true || at < from || at >= from + count);

  for (let size = Math.ceil(least.happenings.length / 2); size >= 1;) {
    let removed = false;
    for (let from = 0; from < least.happenings.length;) {
      const rest = without(from, size);
      if (rest.length < least.happenings.length && (await attempt({ ...least, happenings: rest })))
        removed = true;
      else from += size;
    }
    if (!removed || size > 1) size = size === 1 ? 0 : Math.ceil(size / 2);
  }
  for (const name of Object.keys(CALM) as (keyof Conditions)[]) {
    // Paths of a second source, and of a mount, mean nothing without it.
    if (isCalm(least.conditions, name) || ["second", "nested", "joins", "git", "mounted"].includes(name))
      continue;
    // Without keys, work that outlasts every request never comes to an end: no world has that.
    if (name === "keys" && least.conditions.slow !== undefined) continue;
    await attempt({ ...least, conditions: { ...least.conditions, [name]: CALM[name] } });
  }
  return least;
}

/** What is missing is as what stands for it: nothing, or none. */
function isCalm(conditions: Conditions, name: keyof Conditions): boolean {
  return conditions[name] === CALM[name] || (conditions[name] === undefined && CALM[name] === 0);
}

/** A history in lines for a person: what differs from calm conditions, then what happens when. */
export function wordsOfHistory({ seed, worlds = [], conditions, happenings }: History): readonly string[] {
  const strange = (Object.keys(CALM) as (keyof Conditions)[]).filter((name) => !isCalm(conditions, name));
  return [
    `seed ${seed} in ${worlds.length === 0 ? "a kind world" : worlds.join(", ")}, ${strange.length === 0 ? "calm conditions" : strange.map((name) => `${name} ${JSON.stringify(conditions[name])}`).join(", ")}`,
    ...happenings.map(({ atMs, kind, ...facts }) => {
      const words = Object.entries(facts).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
      return `${(atMs / 1000).toFixed(3).padStart(12)} s  ${kind} ${words.join(" ")}`;
    }),
  ];
}
