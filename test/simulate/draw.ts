import type { Conditions, FaultKind, Happening, History, Operation, StormKind } from "./history.ts";
import { openRandom, type Random } from "./virtual/random.ts";

const FOLDERS = ["", "", "a/", "b/", "a/c/"];
const NAMES = ["x.txt", "y.txt", "z.txt", "Y.txt", "n.md", "m.md", "p.pdf", "q.pdf", "l.url"];
const MINUTE_MS = 60_000;

/** Draws a history in a kind world from a seed. */
export function drawHistory(seed: number): History {
  const random = openRandom(`history ${seed}`);
  const conditions = { ...drawConditions(random), workMs: drawWork(openRandom(`work ${seed}`)) };
  const lengthMs = random.pick([2, 5, 20, 60]) * MINUTE_MS;
  const happenings: Happening[] = [];
  const count = random.pick([3, 8, 20, 40]);
  // What is there when the daemon starts first.
  const atStart = random.pick([0, 2, 6, 16]);
  for (let each = 0; each < atStart; each += 1) happenings.push(drawWrite(random, 0));
  const bursts = Array.from({ length: 4 }, () => random.between(0, lengthMs));
  for (let each = 0; each < count; each += 1) {
    // Half of all things happen close to each other.
    const atMs = random.chance(0.5)
      ? random.between(0, lengthMs)
      : random.pick(bursts) + random.between(0, 3000);
    happenings.push(drawChange(random, atMs));
  }
  for (let each = random.below(7); each > 0; each -= 1)
    happenings.push(drawFault(random, random.pick([...bursts, random.between(0, lengthMs)])));
  for (let each = random.pick([0, 0, 1, 2]); each > 0; each -= 1)
    happenings.push(drawStorm(random, random.between(0, lengthMs)));
  for (let each = random.pick([0, 1, 2, 4]); each > 0; each -= 1)
    happenings.push(drawEnd(random, random.pick([...bursts, random.between(0, lengthMs)])));
  for (let each = random.pick([0, 0, 1, 2]); each > 0; each -= 1)
    happenings.push(drawTrouble(random, random.between(0, lengthMs)));
  if (random.chance(0.3)) {
    for (const atMs of bursts) happenings.push(...drawRestless(random, conditions.settleMs, atMs));
  }
  if (random.chance(0.25)) happenings.push(...drawBackAndForth(random, random.between(10_000, lengthMs)));
  // From a source of their own, so that what is drawn rarely leaves all other draws as they are.
  const rare = openRandom(`rare ${seed}`);
  if (rare.chance(0.03)) happenings.push(...drawClockSet(rare, rare.between(20_000, lengthMs)));
  if (rare.chance(0.03)) happenings.push(...drawLoss(rare, lengthMs));
  if (rare.chance(0.03)) happenings.push(...drawOldDoubt(rare, rare.between(10_000, lengthMs)));
  if (rare.chance(0.03)) happenings.push(...drawOldRow(rare, rare.between(10_000, lengthMs)));
  if (happenings.some((each) => each.kind === "crash" && each.kept === "backup")) {
    happenings.push({ atMs: random.between(0, lengthMs), kind: "backup" });
  }
  return { seed, conditions, happenings: happenings.map(rounded).sort((a, b) => a.atMs - b.atMs) };
}

function drawConditions(random: Random): Conditions {
  return {
    collections: random.chance(0.5),
    pages: random.chance(0.4),
    keys: random.chance(0.3),
    strictList: random.chance(0.1),
    skewMs: random.pick([0, 0, 0, -7_200_000, 86_400_000, 1500]),
    settleMs: random.pick([0, 150, 150, 150, 150, 150, 1000, 1000]),
    concurrency: random.pick([1, 2, 4, 16]),
    rescanMinutes: random.pick([5, 15, 60]),
    requestTimeoutMs: random.pick([5000, 30_000]),
    slowDiskMs: random.pick([0.02, 0.02, 0.5, 5]),
    slowNetMs: random.pick([5, 50, 50, 1000]),
    auditHours: random.pick([0, 0, 24]),
    mode: random.chance(0.15) ? "once" : "run",
    strangers: random.chance(0.5),
  };
}

/** How long the service works on what it reads from an address; some do it before they answer. */
function drawWork(random: Random): number {
  return random.pick([0, 0, 500, 20_000, 300_000]);
}

/** A path that other draws are likely to name as well. */
export function drawPath(random: Random): string {
  return random.pick(FOLDERS) + random.pick(NAMES);
}

/** Few texts, mostly of one length, so that equal texts, titles and sizes are ordinary. */
export function drawText(random: Random, path: string): string {
  const number = random.chance(0.7) ? random.below(4) : random.below(1000);
  if (random.chance(0.05)) return "";
  if (path.endsWith(".pdf") || random.chance(0.03))
    return `%PDF-1.4 pages ${number}${random.chance(0.2) ? " and many more of them".repeat(4) : ""}`;
  if (path.endsWith(".url")) return `[InternetShortcut]\nURL=https://example.org/${number}\n`;
  if (path.endsWith(".md")) return `# Title ${number % 2}\n\ntext ${number}`;
  return `text ${number}${random.chance(0.1) ? " and more, beyond what is read in one go".repeat(2) : ""}`;
}

function drawWrite(random: Random, atMs: number): Happening {
  const path = drawPath(random);
  return { atMs, kind: "write", path, text: drawText(random, path) };
}

function drawChange(random: Random, atMs: number): Happening {
  const path = drawPath(random);
  const roll = random.next();
  if (roll < 0.36) return drawWrite(random, atMs);
  if (roll < 0.42) return { atMs, kind: "append", path, text: " more" };
  if (roll < 0.58) return { atMs, kind: "rename", path, to: drawPath(random) };
  if (roll < 0.62)
    return {
      atMs,
      kind: "rename",
      path: random.pick(["a", "b", "a/c"]),
      to: random.pick(["a", "b", "d", "b/c"]),
    };
  if (roll < 0.66) return { atMs, kind: "swap", path, to: drawPath(random) };
  if (roll < 0.73) return { atMs, kind: "copy", path, to: drawPath(random) };
  if (roll < 0.88) return { atMs, kind: "remove", paths: [path] };
  if (roll < 0.91) return { atMs, kind: "remove", paths: [random.pick(["a", "b", "a/c"])] };
  if (roll < 0.95) return { atMs, kind: "touch", path, agoMs: random.pick([0, 0, 3_600_000]) };
  if (roll < 0.97) {
    const text = random.pick(["a/\n", "*.md\n", "x.txt\n", "", "/b\n*.pdf\n"]);
    return { atMs, kind: "write", path: ".kbsyncignore", text };
  }
  if (roll < 0.98) return { atMs, kind: "remove", paths: [".kbsyncignore"] };
  return { atMs, kind: "remove", paths: ["a", "b", "d", ...NAMES] };
}

const OPERATIONS: readonly (Operation | "any")[] = [
  "create",
  "create",
  "create",
  "update",
  "delete",
  "upload",
  "list",
  "any",
];
const FAULTS: readonly FaultKind[] = [
  "request-lost",
  "answer-lost",
  "answer-lost",
  "answer-lost",
  "answer-cut",
  "answer-page",
  "page-alone",
  "acted-500",
  "500",
  "502",
  "429",
  "429-date",
  "503",
  "401",
  "400",
  "404-page",
  "unsuccess",
  "answer-late",
  "acts-late",
  "acts-late",
  "twice",
];

function drawFault(random: Random, atMs: number): Happening {
  const fault = random.pick(FAULTS);
  const operation = random.pick(OPERATIONS);
  const amount = fault === "acts-late" ? random.between(100, 60_000) : random.pick([0, 1, 5, 60, 600]);
  return { atMs, kind: "fault", operation, fault, amount };
}

const STORMS: readonly StormKind[] = [
  "down",
  "down",
  "answer-lost",
  "request-lost",
  "500",
  "502",
  "429",
  "429-date",
  "503",
  "401",
  "answer-page",
  "list-lags",
];

function drawStorm(random: Random, atMs: number): Happening {
  const storm = random.pick(STORMS);
  const forMs = random.pick([0.2, 1, 5, 30, ...(storm === "down" ? [1440] : [])]) * MINUTE_MS;
  const amount = storm === "list-lags" ? random.pick([500, 5000, 20_000]) : random.pick([1, 10, 60]);
  return { atMs, kind: "storm", storm, forMs, share: random.pick([0.2, 0.5, 1]), amount };
}

function drawEnd(random: Random, atMs: number): Happening {
  const restMs = random.pick([1, 1000, 60_000, 600_000]);
  const next = random.chance(0.2) ? "once" : "run";
  if (random.chance(0.2)) return { atMs, kind: "stop", restMs, next };
  const kept = random.pick(["all", "all", "all", 0, 0, 0, random.next(), "none", "backup"] as const);
  return {
    atMs,
    kind: "crash",
    effects: 1 + random.below(random.pick([10, 60])),
    kept,
    restMs,
    next,
  };
}

/** A file is changed again just when it is likely to be read. */
function drawRestless(random: Random, settleMs: number, atMs: number): Happening[] {
  const path = drawPath(random);
  const changes = 2 + random.below(4);
  return Array.from({ length: changes }, (_, index) => {
    const laterMs = index * (settleMs + random.between(0, 30));
    return { atMs: atMs + laterMs, kind: "write", path, text: drawText(random, path) } as const;
  });
}

/** A file is changed, the daemon dies of it, and the file is put back as it was before the next start. */
function drawBackAndForth(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  const [before, after] = [drawText(random, path), drawText(random, path)];
  return [
    { atMs: random.between(0, atMs - 5000), kind: "write", path, text: before },
    { atMs, kind: "write", path, text: after },
    {
      atMs: atMs + 1,
      kind: "crash",
      effects: 1 + random.below(30),
      kept: random.chance(0.5) ? "all" : 0,
      restMs: 60_000,
      next: "run",
    },
    { atMs: atMs + 10_000, kind: "write", path, text: before },
  ];
}

/** The answer to a create is lost, the daemon dies, and the clock is set back before the next start. */
function drawClockSet(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  return [
    { atMs, kind: "write", path, text: `of its own ${random.below(1000)}` },
    { atMs, kind: "fault", operation: "create", fault: "answer-lost", amount: 0 },
    {
      atMs: atMs + random.between(100, 3000),
      kind: "crash",
      effects: 1 + random.below(6),
      kept: "all",
      restMs: 60_000,
      next: "run",
    },
    { atMs: atMs + 30_000, kind: "clock", byMs: -3_600_000 },
  ];
}

/**
 * A create is lost and sent again, so that an extra resource is searched for, and a backup of the ledger knows it; the file
 * goes, or has another name before the backup, comes again with a resource of its own, and the backup is put back.
 */
function drawOldDoubt(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  const write = { kind: "write", path, text: drawText(random, path) } as const;
  return [
    { ...write, atMs },
    { atMs, kind: "fault", operation: "create", fault: "request-lost", amount: 0 },
    ...(random.chance(0.5)
      ? ([{ atMs: atMs + 50_000, kind: "rename", path, to: drawPath(random) }] as const)
      : ([{ atMs: atMs + 70_000, kind: "remove", paths: [path] }] as const)),
    { atMs: atMs + 60_000, kind: "backup" },
    { ...write, atMs: atMs + 100_000 },
    // Something has to be under way for the crash to come.
    { atMs: atMs + 130_000, kind: "write", path: `b/${random.below(1000)}.txt`, text: "something new" },
    { atMs: atMs + 130_000, kind: "crash", effects: 5, kept: "backup", restMs: 1000, next: "run" },
    // So long the file's own resource is nobody's, and equal to the extra one that is searched for.
    { atMs: atMs + 130_001, kind: "spoil", path, code: "EIO", forMs: 300_000 },
  ];
}

/**
 * A file changes after the ledger's backup, and the service with it; the backup is put back, and so is the file, which
 * cannot be read for the first minutes: it is as the old ledger's row says, and its resource is not.
 */
function drawOldRow(random: Random, atMs: number): Happening[] {
  const path = drawPath(random);
  const before = `as it was ${random.below(1000)}`;
  return [
    { atMs, kind: "write", path, text: before },
    { atMs: atMs + 60_000, kind: "backup" },
    { atMs: atMs + 70_000, kind: "write", path, text: `as it became ${random.below(1000)}` },
    // Something has to be under way for the crash to come.
    { atMs: atMs + 130_000, kind: "write", path: `b/${random.below(1000)}.txt`, text: "something new" },
    { atMs: atMs + 130_000, kind: "crash", effects: 5, kept: "backup", restMs: 60_000, next: "run" },
    { atMs: atMs + 140_000, kind: "write", path, text: before },
    {
      atMs: atMs + 140_001,
      kind: "spoil",
      path,
      code: random.pick(["EACCES", "EIO"]),
      forMs: random.pick([60_000, 300_000]),
    },
  ];
}

/** Files enough that their loss is held until a person agrees; the service loses them, and some are changed after it. */
function drawLoss(random: Random, lengthMs: number): Happening[] {
  const paths = Array.from({ length: 40 }, (_, index) => `w/${index}.txt`);
  const lostMs = lengthMs + random.between(60_000, 600_000);
  return [
    ...paths.map((path) => ({ atMs: 0, kind: "write", path, text: `of ${path}` }) as const),
    { atMs: lostMs, kind: "reset", share: 1 },
    ...Array.from({ length: 3 }, (_, index) => {
      const path = random.pick(paths);
      return {
        atMs: lostMs + 5000 + index * 5000,
        kind: "write",
        path,
        text: `of ${path}, anew`,
      } as const;
    }),
    { atMs: lostMs + 60_000, kind: "stop", restMs: 1000, next: "run" },
  ];
}

function drawTrouble(random: Random, atMs: number): Happening {
  const forMs = random.pick([0.1, 1, 10]) * MINUTE_MS;
  const roll = random.next();
  if (roll < 0.3) {
    const path = random.pick([drawPath(random), drawPath(random), "a", "b", "a/c"]);
    return { atMs, kind: "spoil", path, code: random.pick(["EACCES", "EIO"]), forMs };
  }
  if (roll < 0.5) return { atMs, kind: "root", state: random.pick(["missing", "emptied", "other"]), forMs };
  if (roll < 0.65) return { atMs, kind: "deaf", forMs, reported: random.chance(0.5) };
  if (roll < 0.75) return { atMs, kind: "degraded", forMs };
  if (roll < 0.8) return { atMs, kind: "approve" };
  if (roll < 0.84) return { atMs, kind: "pause", forMs };
  if (roll < 0.88) return { atMs, kind: "reset", share: random.pick([0.1, 1]) };
  if (roll < 0.93) return { atMs, kind: "clock", byMs: random.pick([-3_600_000, -1000, 3_600_000]) };
  return { atMs, kind: "configure", chunkSize: random.pick([500, 1000]) };
}

/** Times without fractions are easier to read in a replay. */
function rounded(happening: Happening): Happening {
  const atMs = Math.round(happening.atMs);
  return "forMs" in happening
    ? { ...happening, atMs, forMs: Math.round(happening.forMs) }
    : { ...happening, atMs };
}
