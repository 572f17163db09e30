import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { syncSettings } from "../../settings.ts";
import { openLedger, type Ledger } from "../../../../src/sync/ledger/ledger.ts";
import { type Agenda, openAgenda } from "../../../../src/sync/daemon/agenda/agenda.ts";
import { isBurstOver, missingWith, ripeOf } from "../../../../src/sync/daemon/pass/burst.ts";
import type { PassContext } from "../../../../src/sync/daemon/pass/context.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { sourceAt } from "../../scan/tree.ts";
import { brake, LATELY_MS } from "../../../../src/sync/plan/brakes.ts";
import type { KnownFile } from "../../../../src/sync/plan/model.ts";
import { TIMING } from "../../../../src/sync/plan/timing.ts";

const ROOT = { dev: 1, ino: 2 };

let folder: string;
let ledger: Ledger;
let passContext: PassContext;
/** When paths are checked again. */
let checks: number[];
let agenda: Agenda;
let nowMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-"));
  ledger = openLedger(folder, "service");
  nowMs = 0;
  const opened = openAgenda({ settleMs: 100, now: () => nowMs, once: false });
  opened.stop();
  agenda = { ...opened, checkAgain: (_path, atMs) => void checks.push(atMs ?? 0) };
  passContext = {
    source: { id: 1, root: folder, rules: openRules(sourceAt(folder)), rulesKey: () => 1 },
    context: { ledger, timing: TIMING, now: () => nowMs, moved: () => undefined, report: () => undefined },
    sync: syncSettings({ settleMs: 100, concurrency: 1 }),
    once: false,
    agenda,
    signal: new AbortController().signal,
  };
});
afterEach(() => {
  ledger.close();
  rmSync(folder, { recursive: true });
});

const row = (path: string): KnownFile => ({
  id: 1,
  path,
  docId: "doc",
  state: "agreed",
  sizeBytes: 1,
  mtimeMs: 1,
  ctimeMs: 1,
  ino: 1,
  rulesKey: 1,
});

const rows = (paths: readonly string[]): KnownFile[] =>
  paths.map((path) => ({ ...row(path), id: Number.parseInt(path, 36) }));

/** Files of the source: enough that nothing is held, unless a test says otherwise. */
let filesBefore: number;
beforeEach(() => {
  filesBefore = 1_000_000;
});

/** One pass over `paths` (default: everything), of which `missing` are gone. Returns what is sent and what is held. */
const pass = (
  atMs: number,
  missing: readonly string[],
  {
    paths,
    quiet = true,
    missingBusy = 0,
  }: { paths?: readonly string[]; quiet?: boolean; missingBusy?: number } = {},
): { readonly sent: string[]; readonly held: string[]; readonly checks: number[] } => {
  nowMs = atMs;
  const scan = {
    root: ROOT,
    entries: rows(["other"]),
    unreadable: [],
    refused: [],
    skipped: [],
    scope: paths,
  };
  const facts = {
    rootBefore: ROOT,
    filesBefore,
    missingBusy,
    hidden: 0,
    unread: 0,
    deletedLately: 0,
    heldBefore: 0,
    holdDeletesOver: 50,
    holdDeletesPercent: 20,
    holdReason: undefined,
    approval: undefined,
    keeps: false,
    others: new Set<number>(),
    leftOut: new Set<number>(),
  };
  checks = [];
  const when = { quiet, isBurstOver: isBurstOver(passContext), missingBusy };
  const braked = ripeOf(passContext, brake(scan, rows(missing), facts), scan, when);
  const names = (found: readonly KnownFile[]): string[] => found.map(({ path }) => path);
  return { sent: names(braked.deletes), held: names(braked.held), checks };
};
const waiting = (): string[] => [...agenda.missing().keys()];

describe("a missing file", () => {
  it("a missing file is deleted when it is still missing two seconds later and no other file has gone", () => {
    expect(pass(0, ["a"]).sent).toEqual([]);
    expect(pass(100, ["a"]).sent).toEqual([]);
    expect(pass(1999, ["a"]).sent).toEqual([]);
    expect(isBurstOver(passContext)).toBe(false);
    expect(pass(2000, ["a"]).sent).toEqual(["a"]);
    expect(waiting()).toEqual([]);
  });

  it("a missing file waits at most five seconds for others that are edited continually", () => {
    expect(pass(0, ["a"], { quiet: false }).sent).toEqual([]);
    for (let atMs = 60; atMs < 4900; atMs += 60) {
      expect(pass(atMs, [], { paths: ["b"], quiet: false }).sent).toEqual([]);
      expect(waiting()).toEqual(["a"]);
      expect(pass(atMs + 30, ["a"], { quiet: false }).sent).toEqual([]);
    }
    expect(pass(5000, ["a"], { quiet: false }).sent).toEqual(["a"]);
  });

  it("a missing file starts to wait again when it was seen meanwhile", () => {
    expect(pass(0, ["a"]).sent).toEqual([]);
    expect(pass(1500, []).sent).toEqual([]);
    expect(pass(2500, ["a"]).sent).toEqual([]);
    expect(pass(4500, ["a"]).sent).toEqual(["a"]);
  });

  it("a missing file starts to wait again when nothing could be decided meanwhile", () => {
    pass(0, ["a"]);
    agenda.forgetMissing();
    expect(pass(2500, ["a"]).sent).toEqual([]);
  });

  it("a missing file is checked again before the source could count as idle", () => {
    expect(pass(0, ["a", "b"]).checks).toEqual([100, 100, 1000]);
    expect(pass(100, ["a", "b"]).checks).toEqual([1100]);
    expect(pass(1100, ["a", "b"]).checks).toEqual([2000]);
  });

  it("a missing file that waits for others is not checked every moment after its burst is over", () => {
    pass(0, ["a"]);
    expect(pass(2000, ["a"], { quiet: false }).checks).toEqual([2100, 3000]);
  });

  it("a missing file counts together with those of other passes", () => {
    expect(missingWith(passContext, rows(["a"]))).toBe(1);
    pass(0, ["a"]);
    expect(missingWith(passContext, rows(["a"]))).toBe(1);
    expect(missingWith(passContext, rows(["b"]))).toBe(2);
  });
});

describe("a burst of deletes", () => {
  const names = Array.from({ length: 600 }, (_, index) => (index + 36 * 36).toString(36));
  const some = names.slice(0, 30);

  it("a burst is held as a whole if it is a mass in the end, however small it was at first", () => {
    filesBefore = 40;
    const held = new Set<string>();
    for (const index of [...some.keys(), 60]) {
      const found = pass(index * 1500, some.slice(0, index + 1));
      expect(found.sent).toEqual([]);
      for (const path of found.held) held.add(path);
    }
    expect([...held].toSorted()).toEqual(some);
  });

  it("a burst is held as soon as it is a mass, without waiting for its end", () => {
    filesBefore = 40;
    pass(0, some.slice(0, 25));
    expect(pass(200, some).held).toEqual(some.slice(0, 25));
  });

  it("a burst that is not a mass is sent as a whole when it is over", () => {
    for (const index of some.keys()) expect(pass(index * 1500, some.slice(0, index + 1)).sent).toEqual([]);
    expect(pass(29 * 1500 + 2000, some).sent).toEqual(some);
  });

  it("a burst that does not end is sent after ten minutes, except its newest file", () => {
    for (let index = 0; index < 600; index += 1)
      expect(pass(index * 1000, names.slice(0, index + 1)).sent).toEqual([]);
    expect(pass(LATELY_MS, [...names, "zzz"]).sent).toEqual(names);
    expect(waiting()).toEqual(["zzz"]);
  });

  it("a burst continues while checks of other parts find nothing missing, or more", () => {
    pass(0, ["a"]);
    pass(1000, [], { paths: ["c"] });
    expect(waiting()).toEqual(["a"]);
    pass(1900, ["b"], { paths: ["b"] });
    expect(pass(3000, ["a"], { paths: ["a"] }).sent).toEqual([]);
    nowMs = 3900;
    expect(isBurstOver(passContext)).toBe(true);
    expect(pass(3900, ["a", "b"]).sent).toEqual(["a", "b"]);
  });

  it("a burst continues while files in flight go missing", () => {
    pass(0, ["a"]);
    expect(pass(2000, ["a"], { missingBusy: 2 }).sent).toEqual([]);
    expect(pass(3900, ["a"]).sent).toEqual([]);
    expect(pass(4000, ["a"], { missingBusy: 3 }).sent).toEqual([]);
    expect(pass(6000, ["a"], { missingBusy: 3 }).sent).toEqual(["a"]);
  });
});
