import { describe, expect, it } from "vitest";
import { brake, type BrakeFacts } from "../../../src/sync/plan/brakes.ts";
import type { FileState, KnownFile, Scan } from "../../../src/sync/plan/model.ts";

const ROOT = { dev: 1, ino: 2 };
const scan = (root: Scan["root"] = ROOT): Scan => ({
  root,
  entries: [],
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
});
const rows = (count: number, state: FileState = "agreed"): KnownFile[] =>
  Array.from({ length: count }, (_, index) => ({
    id: index,
    path: `${state}${index}`,
    docId: `doc${index}`,
    state,
    sizeBytes: 1,
    mtimeMs: 1,
    ctimeMs: 1,
    ino: index,
    rulesKey: 1,
  }));
const facts = (more: Partial<BrakeFacts> = {}): BrakeFacts => ({
  rootBefore: ROOT,
  filesBefore: 200,
  missingBusy: 0,
  hidden: 0,
  unread: 0,
  deletedLately: 0,
  heldBefore: 0,
  holdDeletesOver: 50,
  holdDeletesPercent: 20,
  holdReason: undefined,
  approval: undefined,
  keeps: false,
  others: new Set(),
  leftOut: new Set(),
  ...more,
});

describe("brakes", () => {
  it.each<{
    name: string;
    scan?: Scan;
    gone: KnownFile[];
    facts?: Partial<BrakeFacts>;
    deletes: number;
    held: number;
    halted?: boolean;
  }>([
    { name: "an ordinary delete proceeds", gone: rows(1), deletes: 1, held: 0 },
    {
      name: "many deletes proceed if they are a small part of the source",
      gone: rows(60),
      facts: { filesBefore: 1000 },
      deletes: 60,
      held: 0,
    },
    {
      name: "deletes of half of a small folder proceed",
      gone: rows(20),
      facts: { filesBefore: 40 },
      deletes: 20,
      held: 0,
    },
    {
      name: "deletes of more than half of a small folder are held",
      gone: rows(21),
      facts: { filesBefore: 40 },
      deletes: 0,
      held: 21,
    },
    {
      name: "deletes of more than half proceed up to ten files",
      gone: rows(10),
      facts: { filesBefore: 11 },
      deletes: 10,
      held: 0,
    },
    {
      name: "recent deletes count as files of a small folder",
      gone: rows(15),
      facts: { filesBefore: 34, deletedLately: 6 },
      deletes: 0,
      held: 15,
    },
    {
      name: "a lower configured limit applies to small folders too",
      gone: rows(6),
      facts: { filesBefore: 20, holdDeletesOver: 5 },
      deletes: 0,
      held: 6,
    },
    {
      name: "a configured percentage applies to small folders too",
      gone: rows(39),
      facts: { filesBefore: 40, holdDeletesPercent: 100 },
      deletes: 39,
      held: 0,
    },
    { name: "many deletes of a large part are held", gone: rows(60), deletes: 0, held: 60 },
    {
      name: "successive small batches count together",
      gone: rows(20),
      facts: { deletedLately: 40 },
      deletes: 0,
      held: 20,
    },
    {
      name: "a folder whose few files all have other names and contents was not emptied",
      scan: { ...scan(), entries: [rows(1)[0] as KnownFile] },
      gone: rows(3),
      facts: { filesBefore: 3 },
      deletes: 3,
      held: 0,
    },
    {
      name: "a folder that still contains a refused file was not emptied",
      scan: { ...scan(), refused: [{ path: "big", reason: "large" }] },
      gone: rows(3),
      facts: { filesBefore: 3 },
      deletes: 3,
      held: 0,
    },
    {
      name: "the deletes of an emptied folder are held",
      gone: rows(2),
      facts: { filesBefore: 2 },
      deletes: 0,
      held: 2,
    },
    {
      name: "another folder without the only file halts the source",
      scan: {
        ...scan({ dev: 1, ino: 3 }),
        entries: [{ path: "stranger", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 9 }],
      },
      gone: rows(1),
      facts: { filesBefore: 1 },
      deletes: 0,
      held: 1,
      halted: true,
    },
    {
      name: "another folder halts the source although the only other file was in flight",
      scan: {
        ...scan({ dev: 1, ino: 3 }),
        entries: [{ path: "stranger", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 9 }],
      },
      gone: rows(1),
      facts: { filesBefore: 2, missingBusy: 1 },
      deletes: 0,
      held: 1,
      halted: true,
    },
    {
      name: "another folder halts the source although the only file was being sent again",
      scan: {
        ...scan({ dev: 1, ino: 3 }),
        entries: [{ path: "stranger", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 9 }],
      },
      gone: [],
      facts: { filesBefore: 1, missingBusy: 1 },
      deletes: 0,
      held: 0,
      halted: true,
    },
    {
      name: "another folder halts the source although the only files not known to be gone are unreadable",
      scan: {
        ...scan({ dev: 1, ino: 3 }),
        entries: [{ path: "stranger", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 9 }],
        unreadable: [{ path: "private", code: "EACCES" }],
      },
      gone: rows(10),
      facts: { filesBefore: 12, hidden: 2 },
      deletes: 0,
      held: 10,
      halted: true,
    },
    {
      name: "a file that disappears while it is sent again holds nothing",
      gone: [],
      facts: { filesBefore: 1, missingBusy: 1, deletedLately: 1000 },
      deletes: 0,
      held: 0,
    },
    {
      name: "the deletes of an emptied folder are held although a file was in flight",
      gone: rows(1),
      facts: { filesBefore: 2, missingBusy: 1 },
      deletes: 0,
      held: 1,
    },
    {
      name: "a mass delete is held although most of its files were in flight",
      gone: rows(2),
      facts: { filesBefore: 40, missingBusy: 30 },
      deletes: 0,
      held: 2,
    },
    {
      name: "the delete of a single file proceeds",
      gone: rows(1),
      facts: { filesBefore: 1 },
      deletes: 1,
      held: 0,
    },
    {
      name: "a missing folder halts the source",
      scan: { ...scan(), root: undefined },
      gone: rows(1),
      deletes: 0,
      held: 0,
      halted: true,
    },
    {
      name: "another device halts the source, even for one delete",
      scan: scan({ dev: 9, ino: 2 }),
      gone: rows(1),
      deletes: 0,
      held: 1,
      halted: true,
    },
    {
      name: "the same folder under another device number continues if its time of birth proves it",
      scan: scan({ dev: 9, ino: 2, born: true }),
      gone: rows(3),
      deletes: 3,
      held: 0,
    },
    {
      name: "a folder on another device with another time of birth halts the source",
      scan: scan({ dev: 9, ino: 3, born: true }),
      gone: rows(1),
      deletes: 0,
      held: 1,
      halted: true,
    },
    {
      name: "a folder on another device with every file is accepted",
      scan: scan({ dev: 9, ino: 2 }),
      gone: [],
      deletes: 0,
      held: 0,
    },
    {
      name: "a recreated folder with most files continues",
      scan: scan({ dev: 1, ino: 9 }),
      gone: rows(3),
      deletes: 3,
      held: 0,
    },
    {
      name: "a recreated folder with none of the files halts the source",
      scan: scan({ dev: 1, ino: 9 }),
      gone: rows(9),
      facts: { filesBefore: 9 },
      deletes: 0,
      held: 9,
      halted: true,
    },
    { name: "an agreed mass delete proceeds", gone: rows(60, "doomed"), deletes: 60, held: 0 },
    { name: "held deletes stay held after they have become few", gone: rows(3, "held"), deletes: 0, held: 3 },
    {
      name: "a new delete proceeds although others are held",
      gone: [...rows(3, "held"), ...rows(1)],
      deletes: 1,
      held: 3,
    },
    {
      name: "an approval of another root releases all brakes",
      scan: scan({ dev: 9, ino: 9 }),
      gone: rows(200),
      facts: { approval: { root: { dev: 9, ino: 9 }, files: 200 } },
      deletes: 200,
      held: 0,
    },
    {
      name: "an approval of one root does not cover a third",
      scan: scan({ dev: 8, ino: 9 }),
      gone: rows(200),
      facts: { approval: { root: { dev: 9, ino: 9 }, files: 200 } },
      deletes: 0,
      held: 200,
      halted: true,
    },
    {
      name: "an approval covers what was missing then, and no more",
      scan: scan({ dev: 9, ino: 9 }),
      gone: rows(121),
      facts: { approval: { root: { dev: 9, ino: 9 }, files: 120 } },
      deletes: 0,
      held: 121,
      halted: true,
    },
    {
      name: "an approval of another root does not cover a missing folder",
      scan: { ...scan(), root: undefined },
      gone: rows(60),
      facts: { approval: { root: ROOT, files: 60 } },
      deletes: 0,
      held: 0,
      halted: true,
    },
    {
      name: "deletes because of the rules are held like any mass",
      gone: rows(60),
      facts: { leftOut: new Set(rows(60).map(({ id }) => id)) },
      deletes: 0,
      held: 60,
    },
    {
      name: "a few deletes because of the rules proceed",
      gone: rows(3),
      facts: { leftOut: new Set([0, 1, 2]) },
      deletes: 3,
      held: 0,
    },
  ])("$name", ({ scan: seen = scan(), gone, facts: more, deletes, held, halted = false }) => {
    const braked = brake(seen, gone, facts(more));
    expect([braked.deletes.length, braked.held.length, braked.halted]).toEqual([deletes, held, halted]);
    expect(braked.reason === undefined).toBe(held === 0 && !halted);
  });

  const all = (count: number): BrakeFacts["leftOut"] => new Set(rows(count).map(({ id }) => id));
  it.each<{
    name: string;
    scan?: Scan;
    gone?: KnownFile[];
    facts?: Partial<BrakeFacts>;
    words: string | undefined;
  }>([
    { name: "emptied", words: "the folder was emptied" },
    {
      name: "all files were replaced",
      scan: { ...scan(), entries: rows(1) },
      words: "60 deletes at once, 100 % of the source",
    },
    {
      name: "one delete too many after others",
      scan: { ...scan(), entries: rows(1) },
      gone: rows(1),
      facts: { filesBefore: 100, deletedLately: 50 },
      words: "1 delete after 50 within 10 minutes, 34 % of the source",
    },
    {
      name: "the rules leave everything out: the folder was not emptied",
      facts: { leftOut: all(60) },
      words: "the rules leave out 60 files that were in agreement",
    },
    {
      name: "the rules leave most out, and some files are gone",
      scan: { ...scan(), entries: rows(1) },
      facts: { leftOut: all(58) },
      words: "the rules leave out 58 files that were in agreement, and 2 files more are gone",
    },
    {
      name: "a single file that the rules leave out is named as one",
      scan: { ...scan(), entries: rows(1) },
      facts: { leftOut: all(1) },
      words: "the rules leave out 1 file that was in agreement, and 59 files more are gone",
    },
    {
      name: "a part of the folder was scanned, and more is held elsewhere",
      scan: { ...scan(), scope: ["sub"] },
      gone: rows(19),
      facts: { filesBefore: 100, deletedLately: 37, heldBefore: 51 },
      words: "70 deletes after 37 within 10 minutes, 78 % of the source",
    },
    {
      name: "held before, nothing new",
      gone: rows(60, "held"),
      facts: { holdReason: "as it was reported" },
      words: "as it was reported",
    },
    {
      name: "more is missing than was agreed to",
      scan: scan({ dev: 1, ino: 9 }),
      facts: { approval: { root: { dev: 1, ino: 9 }, files: 58 } },
      words:
        "more is missing than was agreed to (58 files then, 60 now): the folder was replaced by another one that holds none of its files",
    },
    { name: "nothing held", gone: rows(1), facts: { filesBefore: 100 }, words: undefined },
  ])("brakes explain: $name", ({ scan: seen = scan(), gone = rows(60), facts: more, words }) => {
    expect(brake(seen, gone, facts({ filesBefore: 60, ...more })).reason).toBe(words);
  });

  it.each([
    { name: "an ordinary delete", gone: rows(1), counted: 1 },
    { name: "what a person agreed to, row by row", gone: rows(60, "doomed"), counted: 0 },
    {
      name: "what a person agreed to as a whole",
      gone: rows(60),
      more: { approval: { root: ROOT, files: 60 } },
      counted: 0,
    },
    { name: "what is held", gone: rows(60), counted: 0 },
  ])("brakes count $counted towards later deletes: $name", ({ gone, more, counted }) => {
    expect(brake({ ...scan(), entries: rows(1) }, gone, facts(more)).counted).toBe(counted);
  });
});
