import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigFile } from "../../../src/config/schema.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { Observed } from "../../../src/sync/ledger/files.ts";
import { openDeletes, type Deletes } from "../../../src/sync/pass/deletes.ts";
import { LATELY_MS } from "../../../src/sync/plan/brakes.ts";
import type { KnownFile } from "../../../src/sync/plan/model.ts";
import { scopeTest } from "../../../src/sync/plan/reconcile.ts";

let folder: string;
let ledger: Ledger;
let deletes: Deletes;
let nowMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-"));
  ledger = openLedger(folder, "service");
  nowMs = 0;
  const sync = { ...ConfigFile.parse({ sync: { settleMs: 100 } }).sync, concurrency: 1 };
  deletes = openDeletes({ source: 1, ledger, sync, now: () => nowMs, once: false, keepTries: 0 });
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

const observedAt = (path: string): Observed => ({
  entry: row(path),
  rulesKey: 1,
  hash: "",
  digest: "",
  title: path,
  label: "",
  extractorVersion: 1,
  shape: {
    kind: "content",
    tier: "fastest",
    ownerId: "owner",
    settings: { strategy: "recursive", chunkSize: 1, chunkOverlap: 0 },
  },
  fileUrl: undefined,
});

/** A pass over these paths at a time, in which `a` is missing if it is looked at. Whether its delete is ripe then. */
const pass = (atMs: number, paths: string[], quiet = false, isMissing = true): boolean => {
  nowMs = atMs;
  const gone = isMissing && paths.includes("a") ? [row("a")] : [];
  return deletes.ripe(gone, scopeTest(paths), quiet, () => undefined).length > 0;
};

describe("a missing file", () => {
  it("is ripe when it is still missing at a second look and nothing else happens", () => {
    expect(pass(0, ["a"], true)).toBe(false);
    expect(pass(99, ["a"], true)).toBe(false);
    expect(pass(100, ["a"], true)).toBe(true);
  });

  it("waits for others that are edited all the time, at most five seconds", () => {
    expect(pass(0, ["a"])).toBe(false);
    for (let atMs = 60; atMs < 4900; atMs += 60) {
      expect(pass(atMs, ["b"])).toBe(false);
      expect([...deletes.waiting()]).toEqual(["a"]);
      expect(pass(atMs + 30, ["a"])).toBe(false);
    }
    expect(pass(5000, ["a"])).toBe(true);
    expect([...deletes.waiting()]).toEqual([]);
  });

  it("begins to wait anew when it was seen meanwhile", () => {
    expect(pass(0, ["a"])).toBe(false);
    expect(pass(4000, ["a"], false, false)).toBe(false);
    expect(pass(6000, ["a"])).toBe(false);
    expect(pass(11_000, ["a"])).toBe(true);
  });

  it("is not ripe before all others are, where the folder is being emptied", () => {
    const rows = [row("a"), { ...row("b"), id: 2 }];
    const ripeAt = (atMs: number, gone: KnownFile[]): string[] => {
      nowMs = atMs;
      const scope = scopeTest(undefined);
      return deletes.ripe(gone, scope, true, () => undefined, true).map(({ path }) => path);
    };
    expect(ripeAt(0, rows.slice(0, 1))).toEqual([]);
    expect(ripeAt(90, rows)).toEqual([]);
    // The first is ripe by itself.
    expect(ripeAt(110, rows)).toEqual([]);
    expect(ripeAt(190, rows)).toEqual(["a", "b"]);
  });

  it("is counted with those that other passes found missing", () => {
    expect(deletes.missingWith([row("a")])).toBe(1);
    pass(0, ["a"]);
    expect(deletes.missingWith([row("a")])).toBe(1);
    expect(deletes.missingWith([{ ...row("b"), id: 2 }])).toBe(2);
  });
});

it("what was made lately is told of this source alone, as long as it is there", async () => {
  const other = await new Promise<number>((resolve) => {
    void ledger.write(() => {
      ledger.sources.open("/docs", "owner", "fastest");
      resolve(ledger.sources.open("/other", "owner", "fastest").id);
    });
  });
  const make = (source: number, docId: string, atMs: number, isThere = true): void => {
    const activity = { source, path: docId, from: undefined, docId, durationMs: 0, message: undefined };
    ledger.activity.add({ ...activity, atMs, action: "create", outcome: "done" });
    if (isThere) ledger.files.insert(source, docId, "agreed", observedAt(docId));
  };
  await ledger.write(() => {
    make(1, "before", 0);
    make(1, "lately", LATELY_MS);
    make(1, "gone again", LATELY_MS, false);
    make(other, "other's", LATELY_MS);
  });
  nowMs = LATELY_MS + 1;
  expect([...deletes.madeLately()]).toEqual(["lately"]);
});
