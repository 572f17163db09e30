import type { Happening, History } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { GIT_IGNORE, IGNORE_FILE } from "../world/expected.ts";
import { MINUTE_MS, withConditions, withHappenings, without, type UnkindWorld } from "./unkind-world.ts";

/** Begins every text that must never reach the service. */
export const SECRET = "SECRET";
/** A file that grows all the time. */
export const GROWING = "grow/log.txt";

/** Worlds whose folder is changed in ways that are hard to see. */
export const FOLDER_WORLDS: readonly UnkindWorld[] = [
  {
    name: "ignore-files",
    does: "ignore files are rewritten in steps or replaced by renaming, while what they exclude is there",
    share: 0.1,
    passes: true,
    change: withIgnoreFiles,
  },
  {
    name: "git",
    does: "the same with the ignore files of a Git work tree",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const changed = withIgnoreFiles(random, history, endMs);
      return { ...withConditions(changed, { git: true }), happenings: changed.happenings.map(inGit) };
    },
  },
  {
    name: "there-and-back",
    does: "a folder is renamed and renamed back while its files are on their way",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const atMs = random.between(0, endMs);
      const files = Array.from({ length: random.pick([3, 12, 40]) }, (_, index): Happening => {
        return { atMs, kind: "write", path: `t/${index}.txt`, text: `text ${index}` };
      });
      const renames: Happening[] = [];
      let whenMs = atMs + random.between(0, 3000);
      for (let each = 1 + random.below(3); each > 0; each -= 1) {
        renames.push({ atMs: whenMs, kind: "rename", path: "t", to: "u" });
        whenMs += random.between(200, 2000);
        renames.push({ atMs: whenMs, kind: "rename", path: "u", to: "t" });
        whenMs += random.between(200, 5000);
      }
      return withHappenings(history, [...files, ...renames]);
    },
  },
  {
    name: "growing-files",
    does: "a file grows all the time; it is sent every ten seconds at most",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      const growth: Happening[] = [];
      const beginMs = random.between(0, endMs);
      const forMs = random.pick([0.5, 2, 4]) * MINUTE_MS;
      const [leastMs, mostMs] = random.pick([
        [400, 900],
        [400, 900],
        [2000, 5000],
        [2000, 10_000],
      ] as const);
      for (let atMs = beginMs; atMs < beginMs + forMs; atMs += random.between(leastMs, mostMs))
        growth.push({ atMs, kind: "append", path: GROWING, text: "one more line\n" });
      const first: Happening = { atMs: beginMs, kind: "write", path: GROWING, text: "first line\n" };
      // In a folder that cannot be watched each scan finds an edited file, four times a minute.
      const watched = without(history, ({ kind }) => kind === "degraded");
      return withHappenings(watched, [first, ...growth]);
    },
  },
  {
    name: "remounts",
    does: "the source's disk, and one below it, are unmounted and mounted again, or hidden by others",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      // The inner folder would go with the outer one.
      if (history.conditions.nested === true) return history;
      // What has long to wait for its turn at the service cannot be noticed in time.
      const { slow: _, ...rest } = history.conditions;
      const conditions = { ...rest, mounted: true, mode: "run", workMs: 0, rescanMinutes: 60 } as const;
      const paths = ["1.txt", "2.txt", "s/1.txt", "s/2.txt", "s/3.txt", "m/1.txt", "m/2.txt", "m/n/3.txt"];
      const happenings = paths.map((path): Happening => ({
        atMs: 0,
        kind: "write",
        path,
        text: `of ${path}`,
      }));
      let atMs = random.between(20_000, MINUTE_MS);
      for (let each = 1 + random.below(4); each > 0; each -= 1) {
        const folder = random.pick(["", "", "m", "m", "s"]);
        // Of a folder that is no mount nothing can be unmounted.
        const state = folder === "s" ? "over" : random.pick(["away", "away", "over"] as const);
        const forMs = random.pick([0.5, 3, 30, 200]) * 1000 * random.between(0.5, 1.5);
        const own = paths.filter((path) => path.startsWith(folder));
        // What is hidden does not change; what is unmounted may be mounted elsewhere.
        const changes = own
          .filter(() => state === "away" && random.chance(0.3))
          .map((path) => ({ path, text: `changed ${each} of ${path}` }));
        happenings.push({ atMs, kind: "mount", folder, state, forMs, changes });
        atMs += forMs + random.pick([500, 10_000, endMs / 4]);
        // Its hint is lost where the watches are still those of the former mount.
        happenings.push({ atMs, kind: "write", path: random.pick(own), text: `after ${each}` });
        atMs += random.pick([100, 5000, 60_000]);
      }
      return { ...history, conditions, happenings };
    },
  },
  {
    name: "coarse-times",
    does: "the disk keeps times in whole or double seconds, and files are saved twice within one",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const saves = Array.from({ length: 2 + random.below(6) }, (_, index): Happening[] => {
        const path = `c/${index % 3}.txt`;
        const atMs = random.between(0, endMs);
        const laterMs = atMs + random.between(150, 2500);
        const text = (): string => `text ${100 + random.below(900)}`;
        return [
          { atMs, kind: "write", path, text: text() },
          { atMs: laterMs, kind: "write", path, text: text() },
        ];
      });
      return withHappenings(withConditions(history, { coarseMs: random.pick([1000, 2000]) }), saves.flat());
    },
  },
  {
    name: "troubled-and-emptied",
    does: "files that failed although they have resources are gone with all others, at once or one after another",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      const paths = Array.from({ length: random.pick([3, 5, 12, 40]) }, (_, index) => `e/${index}.txt`);
      const failMs = endMs + random.between(1, 5) * MINUTE_MS;
      const storm = random.pick(["400", "500"] as const);
      const goneMs = failMs + random.between(1, 8) * MINUTE_MS;
      const gone = random.chance(0.5) ? { paths: ["e"] } : { paths, everyMs: random.between(50, 1000) };
      // Whatever else happens would keep files from being refused before they go; and one pass waits for no further files.
      const calm = withConditions({ ...history, happenings: [] }, "everyMs" in gone ? { mode: "run" } : {});
      return withHappenings(calm, [
        ...paths.map((path): Happening => ({ atMs: endMs, kind: "write", path, text: `of ${path}` })),
        { atMs: failMs, kind: "storm", storm, forMs: 10 * MINUTE_MS, share: 1, amount: 0 },
        ...paths.map((path): Happening => ({ atMs: failMs, kind: "write", path, text: `other of ${path}` })),
        { atMs: goneMs, kind: "remove", ...gone, empties: true },
      ]);
    },
  },
  {
    name: "partial-adoption",
    does: "a new ledger meets an unreadable folder and resources of others, which come to bear names of our files",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const calm = without(
        history,
        (each) =>
          each.kind === "root" || (each.kind === "crash" && (each.kept === "none" || each.kept === "backup")),
      );
      const unkind = withConditions(calm, { strangers: true, statusEveryMs: random.pick([5000, 30_000]) });
      const own = ["f/1.txt", "f/2.txt", "f/3.md"];
      const midMs = random.between(MINUTE_MS, MINUTE_MS + endMs);
      const foreign = own.map((path): Happening => {
        const isTwin = random.chance(0.5);
        const description = isTwin ? path : "by hand";
        const title = path.endsWith(".md") ? "Of our own" : path;
        return { atMs: midMs, kind: "foreign", title, description, text: isTwin ? "not ours" : textOf(path) };
      });
      const writes = Array.from({ length: 4 + random.below(8) }, (_, index): Happening => {
        const path = random.chance(0.5) ? random.pick(own) : `f/new ${index}.txt`;
        return {
          atMs: midMs + random.between(1000, 5 * MINUTE_MS),
          kind: "write",
          path,
          text: `anew ${index}`,
        };
      });
      return withHappenings(unkind, [
        { atMs: 0, kind: "write", path: "lost+found/1.txt", text: "not to be read" },
        { atMs: 0, kind: "spoil", path: "lost+found", code: "EACCES", forMs: midMs + 10 * MINUTE_MS },
        ...own.map((path): Happening => ({ atMs: 0, kind: "write", path, text: textOf(path) })),
        ...foreign,
        ...writes,
      ]);
    },
  },
];

function withIgnoreFiles(random: Random, history: History, endMs: number): History {
  // Without a settle time nothing distinguishes half a file from a whole one.
  const settleMs = Math.max(150, history.conditions.settleMs);
  const calm = withConditions(without(history, namesIgnoreFile), { settleMs });
  const secrets: Happening[] = ["secret/a.txt", "secret/b.md", "secret/c/d.txt", "top.txt"].map((path) => {
    return { atMs: 0, kind: "write", path, text: `${SECRET} of ${path}` };
  });
  const first: Happening = { atMs: 0, isGiven: true, kind: "write", path: IGNORE_FILE, text: EXCLUDES };
  return withHappenings(calm, [first, ...secrets, ...drawRewrites(random, endMs)]);
}

/** The same happens to the ignore file of Git. */
function inGit(happening: Happening): Happening {
  return "path" in happening && happening.path === IGNORE_FILE
    ? { ...happening, path: GIT_IGNORE }
    : happening;
}

const EXCLUDES = "# what is nobody's business\nsecret/\n/top.txt\n";

function textOf(path: string): string {
  return path.endsWith(".md") ? "# Of our own\n\ntext" : `text of ${path}`;
}

function namesIgnoreFile(happening: Happening): boolean {
  if (happening.kind === "remove") return happening.paths.includes(IGNORE_FILE);
  return "path" in happening && happening.path === IGNORE_FILE;
}

/** Rewrites that do not overlap. */
function drawRewrites(random: Random, endMs: number): Happening[] {
  const count = 1 + random.below(4);
  const slotMs = endMs / count;
  return Array.from({ length: count }, (_, index) => ({
    atMs: 5000 + index * slotMs + random.between(0, slotMs / 2),
    kind: "rewrite",
    path: IGNORE_FILE,
    manner: random.pick(["emptied", "in-steps", "renamed-away", "renamed-over", "removed"]),
    forMs: random.pick([random.between(5, 50), random.between(50, 1000)]),
    text: `${EXCLUDES}*.bak${random.below(100)}\n`,
  }));
}
