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
  deletedLately: 0,
  holdDeletesOver: 50,
  holdDeletesPercent: 20,
  holdReason: undefined,
  approved: false,
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
    { name: "an ordinary delete goes", gone: rows(1), deletes: 1, held: 0 },
    {
      name: "many, yet a small part of the source, go",
      gone: rows(60),
      facts: { filesBefore: 1000 },
      deletes: 60,
      held: 0,
    },
    { name: "a large part, yet few, go", gone: rows(40), facts: { filesBefore: 50 }, deletes: 40, held: 0 },
    { name: "many and a large part are held", gone: rows(60), deletes: 0, held: 60 },
    {
      name: "small batches in a row count together",
      gone: rows(20),
      facts: { deletedLately: 40 },
      deletes: 0,
      held: 20,
    },
    {
      name: "a folder whose few files all have other names and contents now was not emptied",
      scan: { ...scan(), entries: [rows(1)[0] as KnownFile] },
      gone: rows(3),
      facts: { filesBefore: 3 },
      deletes: 3,
      held: 0,
    },
    {
      name: "a folder in which only a refused file is left was not emptied",
      scan: { ...scan(), refused: [{ path: "big", reason: "large" }] },
      gone: rows(3),
      facts: { filesBefore: 3 },
      deletes: 3,
      held: 0,
    },
    { name: "an emptied folder is held", gone: rows(2), facts: { filesBefore: 2 }, deletes: 0, held: 2 },
    {
      name: "one file alone is deleted as any other",
      gone: rows(1),
      facts: { filesBefore: 1 },
      deletes: 1,
      held: 0,
    },
    {
      name: "a missing folder halts",
      scan: { ...scan(), root: undefined },
      gone: rows(1),
      deletes: 0,
      held: 0,
      halted: true,
    },
    {
      name: "another device halts, be it one delete",
      scan: scan({ dev: 9, ino: 2 }),
      gone: rows(1),
      deletes: 0,
      held: 1,
      halted: true,
    },
    {
      name: "another device with every file on it is accepted",
      scan: scan({ dev: 9, ino: 2 }),
      gone: [],
      deletes: 0,
      held: 0,
    },
    {
      name: "a folder made anew with most files goes on",
      scan: scan({ dev: 1, ino: 9 }),
      gone: rows(3),
      deletes: 3,
      held: 0,
    },
    {
      name: "a folder made anew with none of the files halts",
      scan: scan({ dev: 1, ino: 9 }),
      gone: rows(9),
      facts: { filesBefore: 9 },
      deletes: 0,
      held: 9,
      halted: true,
    },
    { name: "an agreed mass delete goes", gone: rows(60, "doomed"), deletes: 60, held: 0 },
    { name: "what is held stays so though it has become few", gone: rows(3, "held"), deletes: 0, held: 3 },
    {
      name: "a new delete goes beside held ones",
      gone: [...rows(3, "held"), ...rows(1)],
      deletes: 1,
      held: 3,
    },
    {
      name: "a person's word opens all brakes",
      scan: scan({ dev: 9, ino: 9 }),
      gone: rows(200),
      facts: { approved: true },
      deletes: 200,
      held: 0,
    },
  ])("$name", ({ scan: seen = scan(), gone, facts: more, deletes, held, halted = false }) => {
    const braked = brake(seen, gone, facts(more));
    expect([braked.deletes.length, braked.held.length, braked.halted]).toEqual([deletes, held, halted]);
    expect(braked.reason === undefined).toBe(held === 0 && !halted);
  });

  it.each([
    { name: "emptied", scan: scan(), words: "the folder was emptied" },
    {
      name: "all of it replaced",
      scan: { ...scan(), entries: rows(1) },
      words: "60 deletes at once, 100 % of the source",
    },
  ])("says why: $name", ({ scan: seen, words }) => {
    expect(brake(seen, rows(60), facts({ filesBefore: 60 })).reason).toBe(words);
  });
});
