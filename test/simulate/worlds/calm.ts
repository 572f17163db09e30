import { drawPath, drawText } from "../draw.ts";
import type { Conditions, Happening, History } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { MINUTE_MS, type UnkindWorld } from "./unkind-world.ts";

/** Worlds that take back what others drew: the judge forgives nothing in them. */
export const CALM_WORLDS: readonly UnkindWorld[] = [
  {
    name: "short-lists-after-a-loss",
    does: "a ledger is lost, lists are short when the next process begins, and files change soon after",
    share: 0.02,
    passes: true,
    change: drawShortLists,
  },
  {
    name: "lost-after-work",
    does: "a ledger is lost, and files are edited, renamed and deleted before the next start",
    share: 0.1,
    passes: true,
    change: drawLostAfterWork,
  },
  {
    name: "damaged-markers",
    does: "a person removes the end of markers, and the ledger may be lost after that",
    share: 0.02,
    passes: true,
    change: drawDamaged,
  },
  {
    name: "replaced-since-a-backup",
    does: "files are emptied, renamed and written as other kinds after the backup of the ledger that is restored",
    share: 0.05,
    passes: true,
    change: drawReplaced,
  },
];

/** Nothing else happens: so few files can all be searched for, and none gets a second resource. */
function drawShortLists(random: Random, { seed, conditions: drawn }: History): History {
  const conditions: Conditions = { ...calmOf(drawn), collections: true };
  const paths = Array.from({ length: 2 + random.below(4) }, (_, index) => `n/${index}.txt`);
  const lostMs = MINUTE_MS;
  return {
    seed,
    conditions,
    happenings: [
      ...paths.map((path): Happening => ({ atMs: 0, kind: "write", path, text: `words of ${path}` })),
      { atMs: lostMs, kind: "write", path: "n/last.txt", text: "words before the loss" },
      { atMs: lostMs, kind: "storm", storm: "list-short", forMs: 20_000, share: 1, amount: 0 },
      { atMs: lostMs, kind: "crash", effects: 1, kept: "none", restMs: 1000, next: "run" },
      ...paths.map((path): Happening => {
        const atMs = lostMs + random.between(10_000, 2 * MINUTE_MS);
        return { atMs, kind: "write", path, text: `other words of ${path}` };
      }),
    ],
  };
}

/** The ledger knows whose these resources are, or a person is asked. */
function drawDamaged(random: Random, { seed, conditions: drawn }: History): History {
  const paths = Array.from({ length: 2 + random.below(6) }, (_, index) => `n/${index}.txt`);
  const [damagedMs, lostMs] = [3 * MINUTE_MS, 4 * MINUTE_MS];
  const lost: readonly Happening[] = [
    // Something has to be under way for the crash to come.
    { atMs: lostMs, kind: "write", path: "n/last.txt", text: "words before the crash" },
    { atMs: lostMs, kind: "crash", effects: 1, kept: "none", restMs: 1000, next: "run" },
  ];
  return {
    seed,
    conditions: calmOf(drawn),
    happenings: [
      ...paths.map((path): Happening => ({ atMs: 0, kind: "write", path, text: `words of ${path}` })),
      { atMs: damagedMs, kind: "page", deed: "damage", nth: random.below(1000) },
      { atMs: damagedMs, kind: "page", deed: "damage", nth: random.below(1000) },
      ...(random.chance(0.7) ? lost : []),
      ...paths
        .filter(() => random.chance(0.3))
        .map((path): Happening => {
          const atMs = lostMs + random.between(2000, 2 * MINUTE_MS);
          return { atMs, kind: "write", path, text: `other words of ${path}` };
        }),
    ],
  };
}

/** A morning's work among a dozen files. Only what changed is sent, and each file keeps its resource. */
function drawLostAfterWork(random: Random, { seed, conditions: drawn }: History): History {
  const listMax = 100;
  const conditions: Conditions = {
    ...calmOf(drawn),
    isLostAtRest: true,
    ...(random.chance(0.2) && { listLagMs: 60_000 }),
    ...(random.chance(0.2) && { hostility: { listMax } }),
  };
  const kinds = ["md", "txt", "pdf"];
  const paths = Array.from({ length: 12 }, (_, index) => `w/${index}.${kinds[index % 3] ?? ""}`);
  const textOf = (path: string, word: string): string =>
    path.endsWith(".pdf") ? `%PDF-1.4 ${word} of ${path}` : `# ${word}\n\n${word} of ${path}`;
  const lostMs = 5 * MINUTE_MS;
  const kept = random.pick(["none", "none", "backup"] as const);
  const change = (path: string): Happening[] => {
    const atMs = lostMs + random.between(2000, 50_000);
    const roll = random.next();
    if (roll < 0.3) return [];
    if (roll < 0.6) return [{ atMs, kind: "write", path, text: textOf(path, "other") }];
    if (roll < 0.85) return [{ atMs, kind: "rename", path, to: `renamed/${path}` }];
    return [{ atMs, kind: "remove", paths: [path] }];
  };
  return {
    seed,
    conditions,
    happenings: [
      ...paths.map((path): Happening => ({ atMs: 0, kind: "write", path, text: textOf(path, "first") })),
      { atMs: 3 * MINUTE_MS, kind: "backup" },
      // Something has to be under way for the crash to come.
      { atMs: lostMs, kind: "write", path: "last.txt", text: "words before the crash" },
      {
        atMs: lostMs,
        kind: "crash",
        effects: 1,
        kept,
        restMs: 60_000,
        next: random.pick(["run", "run", "once"]),
      },
      ...paths.flatMap(change),
    ],
  };
}

/** The resources of the replaced files are known to no row of the ledger that is restored. */
function drawReplaced(random: Random, { seed, conditions: drawn }: History): History {
  const conditions = calmOf(drawn);
  const paths = Array.from({ length: 1 + random.below(4) }, () => drawPath(random));
  const write = (atMs: number, path: string, isEmpty: boolean): Happening => {
    return { atMs, kind: "write", path, text: isEmpty ? "" : drawText(random, path) };
  };
  const change = (atMs: number): Happening[] => {
    const path = random.pick(paths);
    const to = drawPath(random);
    return random.pick<() => Happening[]>([
      () => [write(atMs, path, true)],
      () => [{ atMs, kind: "write", path, text: drawText(random, to) }],
      () => [{ atMs, kind: "rename", path, to }],
      () => [
        { atMs, kind: "rename", path, to },
        write(atMs + random.pick([1, 5000]), to, random.chance(0.5)),
      ],
    ])();
  };
  const backupMs = MINUTE_MS;
  const crashMs = backupMs + random.pick([40_000, 120_000]);
  const changes = Array.from({ length: 1 + random.below(6) }, () =>
    change(random.between(backupMs + 1000, crashMs)),
  );
  const later = random.chance(0.3) ? change(random.between(crashMs + 1000, crashMs + 90_000)) : [];
  const spoil: Happening = {
    atMs: crashMs + 1,
    kind: "spoil",
    path: random.pick(paths),
    code: random.pick(["EACCES", "EIO"]),
    forMs: random.pick([60_000, 300_000]),
  };
  return {
    seed,
    conditions,
    happenings: [
      ...paths.map((path) => write(0, path, false)),
      ...paths.filter(() => random.chance(0.3)).map((path) => write(backupMs / 2, path, true)),
      { atMs: backupMs, kind: "backup" },
      ...changes.flat(),
      // Something has to be under way for the crash to come.
      { atMs: crashMs, kind: "write", path: "n/last.txt", text: "words before the crash" },
      {
        atMs: crashMs,
        kind: "crash",
        effects: 1 + random.below(20),
        kept: "backup",
        restMs: 60_000,
        next: "run",
      },
      ...later,
      ...(random.chance(0.3) ? [spoil] : []),
    ],
  };
}

/** The conditions of a world without strangers, whose service and machine are quick and whose clocks agree. */
function calmOf({ collections, pages, keys, settleMs, concurrency, slowDiskMs }: Conditions): Conditions {
  return {
    collections,
    pages,
    keys,
    strictList: false,
    skewMs: 0,
    settleMs,
    concurrency,
    rescanMinutes: 60,
    requestTimeoutMs: 30_000,
    slowDiskMs,
    slowNetMs: 5,
    auditHours: 0,
    mode: "run",
    strangers: false,
  };
}
