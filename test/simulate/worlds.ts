import { drawHistory, drawPath, drawText } from "./draw.ts";
import { SECOND, type Conditions, type Happening, type History } from "./history.ts";
import { openRandom, type Random } from "./virtual/random.ts";

/** A way in which the real world is less kind than the plain simulation. */
export interface UnkindWorld {
  readonly name: string;
  readonly does: string;
  /** Share of all histories that take place in it, where worlds are not chosen. */
  readonly share: number;
  /** Whether the daemon passes it, so that it is among those that are drawn from where none are chosen. */
  readonly passes: boolean;
  /** Makes a history one of this world. */
  readonly change: (random: Random, history: History, endMs: number) => History;
}

const MINUTE_MS = 60_000;

/** All unkind worlds. Each draws from a source of its own, so that another world leaves what it draws as it is. */
export const WORLDS: readonly UnkindWorld[] = [
  {
    name: "lagging-lists",
    does: "each change becomes visible to lists after a delay of its own; deleted resources are shown meanwhile",
    share: 0.15,
    passes: false,
    change: (random, history, endMs) => {
      const listLagMs = random.pick([1000, 4000, 4000, 20_000, 60_000]);
      const unkind = withConditions(history, { listLagMs, reads: random.chance(0.5) });
      return random.chance(0.6)
        ? withHappenings(unkind, drawLostInARow(random, random.between(1000, endMs)))
        : unkind;
    },
  },
  {
    name: "normalising",
    does: "the service trims lines, composes Unicode and truncates titles",
    share: 0.1,
    passes: false,
    change: (random, history) => {
      const normalisation = {
        trims: random.chance(0.7),
        composes: random.chance(0.7),
        titleChars: random.pick([0, 6, 40]),
      };
      const happenings = history.happenings.map((each) =>
        each.kind === "write" && /\.(?:txt|md)$/.test(each.path) && random.chance(0.6)
          ? {
              ...each,
              text:
                each.text + random.pick(["  ", " \t\nnext", "  \n\n", " cafe\u0301", "\u00e9 e\u0301 \n"]),
            }
          : each,
      );
      return { ...withConditions(history, { normalisation }), happenings };
    },
  },
  {
    name: "false-404",
    does: "requests by a resource's id are answered 404 though it is there, or before it is known everywhere",
    share: 0.1,
    passes: false,
    change: (random, history, endMs) => {
      const unkind = random.chance(0.5)
        ? withConditions(history, { lateMs: random.pick([300, 2000, 10_000]), reads: random.chance(0.5) })
        : withConditions(history, { reads: random.chance(0.5) });
      const happenings: Happening[] = Array.from({ length: 1 + random.below(6) }, () => ({
        atMs: random.between(0, endMs),
        kind: "fault",
        operation: random.pick(["update", "update", "delete", "delete", "read"]),
        fault: random.pick(["404-false", "404-false", "404-acted"]),
        amount: 0,
      }));
      if (random.chance(0.3)) {
        const forMs = random.pick([0.2, 1, 5]) * MINUTE_MS;
        const share = random.pick([0.2, 0.5]);
        const atMs = random.between(0, endMs);
        happenings.push({ atMs, kind: "storm", storm: "404-false", forMs, share, amount: 0 });
      }
      return withHappenings(unkind, happenings);
    },
  },
  {
    name: "wrong-lists",
    does: "lists answer 200 with a part of the resources, in another order, or as they were a minute ago",
    share: 0.1,
    passes: false,
    change: (random, history, endMs) => {
      const happenings: Happening[] = Array.from({ length: 1 + random.below(3) }, () => ({
        atMs: random.between(0, endMs),
        kind: "storm",
        storm: random.pick(["list-short", "list-short", "list-reordered", "list-stale"]),
        forMs: random.pick([0.2, 1, 5]) * MINUTE_MS,
        share: random.pick([0.5, 0.5, 0.9]),
        amount: 0,
      }));
      // A ledger that is lost while lists are short looks for its resources in one of them.
      if (random.chance(0.4)) happenings.push(...drawLostLedger(random, random.between(20_000, endMs)));
      return withHappenings(history, happenings);
    },
  },
  {
    name: "several-sources",
    does: "a second source of another owner, often with equal files",
    share: 0.1,
    passes: true,
    change: (random, history) => withSecond(random, history, "other-owner"),
  },
  {
    name: "one-owner",
    does: "a second source of the same owner, often with equal files",
    share: 0.1,
    passes: false,
    change: (random, history) => withSecond(random, history, "same-owner"),
  },
  {
    name: "asked-for-status",
    does: "somebody asks for the status again and again, which must not say that all agrees when it does not",
    share: 0.3,
    passes: true,
    change: (random, history) => withConditions(history, { statusEveryMs: random.pick([500, 5000, 30_000]) }),
  },
];

/**
 * Draws a history from a seed. Without `chosen` a history takes place in each world that passes with that world's share; with
 * it, in one or more of those that are named.
 */
export function drawIn(seed: number, chosen: readonly string[] | undefined): History {
  const choice = openRandom(`worlds ${seed}`);
  const certain = chosen === undefined || chosen.length === 0 ? undefined : choice.pick(chosen);
  const isIn = ({ name, share, passes }: UnkindWorld): boolean => {
    const random = openRandom(`in ${name} ${seed}`);
    if (chosen === undefined) return passes && random.chance(share);
    return name === certain || (chosen.includes(name) && random.chance(0.3));
  };
  const plain = drawHistory(seed);
  const endMs = plain.happenings.reduce((end, { atMs }) => Math.max(end, atMs), MINUTE_MS);
  const worlds = WORLDS.filter(isIn);
  const history = worlds.reduce(
    (before, { name, change }) => change(openRandom(`world ${name} ${seed}`), before, endMs),
    plain,
  );
  const happenings = history.happenings
    .map((each) => ({ ...each, atMs: Math.round(each.atMs) }))
    .sort((a, b) => a.atMs - b.atMs);
  return { ...history, worlds: worlds.map(({ name }) => name), happenings };
}

/** The worlds of a list of names; throws for a name that is none. */
export function worldsNamed(names: string): readonly string[] {
  if (names === "none") return [];
  if (names === "all") return WORLDS.map(({ name }) => name);
  const chosen = names.split(",");
  const unknown = chosen.find((each) => !WORLDS.some(({ name }) => name === each));
  if (unknown !== undefined) {
    throw new Error(`no world ${unknown}; there are ${WORLDS.map(({ name }) => name).join(", ")}`);
  }
  return chosen;
}

function withConditions(history: History, conditions: Partial<Conditions>): History {
  return { ...history, conditions: { ...history.conditions, ...conditions } };
}

function withHappenings(history: History, more: readonly Happening[]): History {
  return { ...history, happenings: [...history.happenings, ...more] };
}

/** Something is written, the ledger is lost with the process, and lists are short when the next one begins. */
function drawLostLedger(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  return [
    { atMs, kind: "write", path, text: drawText(random, path) },
    { atMs, kind: "crash", effects: 5, kept: "none", restMs: 1000, next: "run" },
    { atMs, kind: "storm", storm: "list-short", forMs: 20_000, share: random.pick([0.5, 1]), amount: 0 },
  ];
}

function withSecond(random: Random, history: History, second: "other-owner" | "same-owner"): History {
  const happenings = history.happenings.flatMap((each) => divided(random, each));
  return { ...withConditions(history, { second }), happenings };
}

/** The answer to a create is lost, and processes die one after another while the next ones settle it. */
function drawLostInARow(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  return [
    { atMs, kind: "write", path, text: drawText(random, path) },
    {
      atMs,
      kind: "fault",
      operation: "create",
      fault: random.pick(["answer-lost", "acted-500", "answer-late", "acts-late"]),
      amount: random.pick([0, 1000, 5000]),
    },
    {
      atMs: atMs + random.between(100, 2000),
      kind: "kills",
      effects: Array.from({ length: 2 + random.below(4) }, () => 1 + random.below(random.pick([6, 20, 60]))),
      restMs: random.pick([1, 500, 3000, 10_000]),
    },
  ];
}

/** Moves some of what happens to the second source, and does some of it in both. */
function divided(random: Random, happening: Happening): Happening[] {
  if (happening.kind === "write") {
    const there = { ...happening, path: SECOND + happening.path };
    const roll = random.next();
    return roll < 0.4 ? [happening] : roll < 0.7 ? [there] : [happening, there];
  }
  if (happening.kind === "append" || happening.kind === "touch")
    return [random.chance(0.4) ? { ...happening, path: SECOND + happening.path } : happening];
  if (happening.kind === "remove")
    return [
      random.chance(0.4) ? { ...happening, paths: happening.paths.map((path) => SECOND + path) } : happening,
    ];
  if (happening.kind === "rename" || happening.kind === "swap" || happening.kind === "copy") {
    const isThere = random.chance(0.4);
    const crosses = random.chance(0.15);
    const path = isThere ? SECOND + happening.path : happening.path;
    return [{ ...happening, path, to: isThere !== crosses ? SECOND + happening.to : happening.to }];
  }
  return [happening];
}
