import { drawPath, drawText } from "../draw.ts";
import type { FaultKind, Happening, Operation } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { MINUTE_MS, withConditions, withHappenings, type UnkindWorld } from "./unkind-world.ts";

/** Worlds whose service does what the specification leaves open, or breaks it. */
export const SERVICE_WORLDS: readonly UnkindWorld[] = [
  {
    name: "lagging-lists",
    does: "each change becomes visible to lists after a delay of its own; deleted resources are shown meanwhile",
    share: 0.15,
    passes: true,
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
    does: "the service trims lines, composes Unicode, stores texts as HTML and truncates titles",
    share: 0.1,
    passes: true,
    change: (random, history) => {
      const normalisation = {
        trims: random.chance(0.7),
        composes: random.chance(0.7),
        escapes: random.chance(0.3),
        titleChars: random.pick([0, 6, 40]),
      };
      const happenings = history.happenings.map((each) =>
        each.kind === "write" && /\.(?:txt|md)$/.test(each.path) && random.chance(0.6)
          ? {
              ...each,
              text:
                each.text +
                random.pick(["  ", " \t\nnext", "  \n\n", " cafe\u0301", "\u00e9 e\u0301 \n", " & more"]),
            }
          : each,
      );
      // What it stores is compared with the ledger while something happens, too.
      const auditHours = random.chance(0.5) ? 1 : history.conditions.auditHours;
      return { ...withConditions(history, { normalisation, auditHours }), happenings };
    },
  },
  {
    name: "false-404",
    does: "requests by a resource's id are answered 404 though it is there, or before it is known everywhere",
    share: 0.1,
    passes: true,
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
    passes: true,
    change: (random, history, endMs) => {
      const happenings: Happening[] = Array.from({ length: 1 + random.below(3) }, () => ({
        atMs: random.between(0, endMs),
        kind: "storm",
        storm: random.pick(["list-short", "list-short", "list-reordered", "list-stale"]),
        forMs: random.pick([0.2, 1, 5]) * MINUTE_MS,
        share: random.pick([0.5, 0.5, 0.9]),
        amount: 0,
      }));
      // A ledger that is lost while lists are short searches for its resources in one of them.
      if (random.chance(0.4)) happenings.push(...drawLostLedger(random, random.between(20_000, endMs)));
      return withHappenings(history, happenings);
    },
  },
  {
    name: "slow-work",
    does: "the service works on a few documents at a time, each for longer than a request may take",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const { requestTimeoutMs } = history.conditions;
      const isAsync = random.chance(0.4);
      const keys = random.chance(0.8);
      // Without keys only a list shows what became of a create: some of them must be answered in time.
      const eachMs = requestTimeoutMs * random.pick(keys ? [0.3, 1.2, 3] : [0.3, 1.2]);
      const workMs = isAsync ? eachMs : 0;
      const atOnce = keys ? random.pick([1, 1, 2, 16]) : 1000;
      const unkind = withConditions(history, { keys, workMs, slow: { eachMs, atOnce } });
      const atMs = random.between(0, endMs);
      const files = Array.from({ length: random.pick([5, 20, 40]) }, (_, index): Happening => {
        return { atMs, kind: "write", path: `s/${index}.txt`, text: `slow ${index}` };
      });
      return withHappenings(unkind, files);
    },
  },
  {
    name: "hard-answers",
    does: "a dozen requests in a row meet one fault each, of every kind",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const bursts = [random.between(0, endMs), random.between(0, endMs)];
      return withHappenings(
        history,
        Array.from({ length: 6 + random.below(20) }, () => drawHardAnswer(random, random.pick(bursts))),
      );
    },
  },
  {
    name: "kill-runs",
    does: "three and more processes in a row are killed while they begin",
    share: 0.15,
    passes: true,
    change: (random, history, endMs) =>
      withHappenings(
        history,
        Array.from({ length: 1 + random.below(3) }, () =>
          drawLostInARow(random, random.between(1000, endMs)),
        ).flat(),
      ),
  },
  {
    name: "old-ledger",
    does: "a backup of the state folder is put in place",
    share: 0.1,
    passes: true,
    change: (random, history, endMs) => {
      const atMs = random.between(MINUTE_MS / 2, endMs);
      const agoMs = random.pick([0, 1000, 10_000, MINUTE_MS, endMs]);
      return withHappenings(history, [
        { atMs: random.between(Math.max(0, atMs - agoMs), atMs), kind: "backup" },
        { atMs, kind: "write", path: drawPath(random), text: `before the end ${random.below(1000)}` },
        {
          atMs,
          kind: "crash",
          effects: 1 + random.below(random.pick([6, 30])),
          kept: "backup",
          restMs: random.pick([1, 1000, MINUTE_MS]),
          next: random.chance(0.2) ? "once" : "run",
        },
      ]);
    },
  },
];

const HARD: readonly FaultKind[] = [
  "request-lost",
  "answer-lost",
  "answer-cut",
  "answer-page",
  "page-alone",
  "acted-500",
  "500",
  "502",
  "503",
  "401",
  "403",
  "404-page",
  "unsuccess",
  "answer-late",
  "acts-late",
];
const HARD_AT: readonly Operation[] = [
  "create",
  "create",
  "update",
  "delete",
  "upload",
  "list",
  "collections",
];

function drawHardAnswer(random: Random, atMs: number): Happening {
  const amount = random.pick([0, 1000, 10_000]);
  return { atMs, kind: "fault", operation: random.pick(HARD_AT), fault: random.pick(HARD), amount };
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
