import { SECOND, type Happening, type History } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { withConditions, withHappenings, without, type UnkindWorld } from "./unkind-world.ts";

/** Worlds of more than one source. */
export const SOURCE_WORLDS: readonly UnkindWorld[] = [
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
    passes: true,
    change: (random, history) => withSecond(random, history, "same-owner"),
  },
  {
    name: "nested-sources",
    does: "a second source of another owner lies inside the first one",
    share: 0.1,
    passes: true,
    change: (random, history) => withNested(random, history, "other-owner"),
  },
  {
    name: "nested-one-owner",
    does: "a second source of the same owner lies inside the first one",
    share: 0.05,
    passes: true,
    change: (random, history) => withNested(random, history, "same-owner"),
  },
  {
    name: "renested-sources",
    does: "a source inside the first one joins the configuration and leaves it, with another owner or the same",
    share: 0.1,
    passes: true,
    change: withRenested,
  },
  {
    name: "additive-sources",
    does: "the sources delete nothing, whatever goes",
    share: 0.1,
    passes: true,
    change: (_random, history) => withConditions(history, { additive: true }),
  },
  {
    name: "starved-source",
    does: "the service takes very long over one source's documents, and none over another's",
    share: 0.02,
    passes: true,
    change: (random, history) => {
      // A source that comes late waits for what came before.
      if (history.happenings.some((each) => each.kind === "configure" && each.inner !== undefined))
        return history;
      const slow = { eachMs: 60_000, atOnce: 1, quickMs: 200_000 };
      const conditions = { second: "other-owner", slow, keys: true, concurrency: 4 } as const;
      const calm = {
        requestTimeoutMs: 30_000,
        workMs: 0,
        slowNetMs: 50,
        slowDiskMs: 0.5,
        mode: "run",
      } as const;
      const atMs = random.between(10_000, 60_000);
      const files = (prefix: string, count: number, laterMs = 0): Happening[] =>
        Array.from({ length: count }, (_, index) => {
          return {
            atMs: atMs + laterMs,
            kind: "write",
            path: `${prefix}${index}.txt`,
            text: `of ${prefix} ${index}`,
          };
        });
      const happenings = [...files("s/", 40), ...files(`${SECOND}q/`, 10 + random.below(10), 2000)];
      const over: Happening = { atMs: atMs + slow.quickMs + 5000, kind: "backup" };
      return { ...withConditions(history, { ...conditions, ...calm }), happenings: [...happenings, over] };
    },
  },
];

function withSecond(random: Random, history: History, second: "other-owner" | "same-owner"): History {
  // Another world has added it.
  if (history.conditions.second !== undefined) return history;
  const happenings = history.happenings.flatMap((each) => divided(random, each));
  return { ...withConditions(history, { second }), happenings };
}

function withNested(random: Random, history: History, second: "other-owner" | "same-owner"): History {
  if (history.conditions.second !== undefined || history.conditions.mounted === true) return history;
  // The inner folder would go with the outer one.
  const calm = without(history, ({ kind }) => kind === "root");
  return withConditions(withSecond(random, calm, second), { nested: true });
}

/** The inner source comes and goes: each time at a start, after a stop, or after whatever else ends the process. */
function withRenested(random: Random, history: History, endMs: number): History {
  // What a create makes after its source left the configuration and its last list was read, nobody finds.
  const calm = without(history, (each) => each.kind === "fault" && each.fault === "acts-late");
  const nested = withNested(random, calm, random.pick(["other-owner", "same-owner"]));
  if (nested === calm) return history;
  const joins = random.chance(0.5);
  const changes = Array.from({ length: 1 + random.below(4) }, () => random.between(1000, endMs)).toSorted(
    (a, b) => a - b,
  );
  const happenings = changes.flatMap((atMs, index): Happening[] => {
    const configure: Happening = { atMs, kind: "configure", inner: (index % 2 === 0) === joins };
    const stop: Happening = {
      atMs: atMs + 1,
      kind: "stop",
      restMs: random.pick([10, 1000, 60_000]),
      next: "run",
    };
    return random.chance(0.7) ? [configure, stop] : [configure];
  });
  return withHappenings(joins ? withConditions(nested, { joins }) : nested, happenings);
}

/** Moves some of what happens to the second source, and does some of it in both. */
function divided(random: Random, happening: Happening): Happening[] {
  if (happening.kind === "write") {
    const there = { ...happening, path: SECOND + happening.path };
    const roll = random.next();
    return roll < 0.4 ? [happening] : roll < 0.7 ? [there] : [happening, there];
  }
  if (happening.kind === "append" || happening.kind === "touch" || happening.kind === "spoil")
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
