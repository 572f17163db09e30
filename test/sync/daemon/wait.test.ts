import { lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DaemonActivity } from "../../../src/wire/daemon-files.ts";
import { openLifecycle, type Lifecycle } from "../../../src/sync/daemon/lifecycle.ts";
import type { Parts } from "../../../src/sync/daemon/parts.ts";
import type { DaemonSources } from "../../../src/sync/daemon/sources.ts";
import { waitFor, type WaitEnd, type WaitOptions } from "../../../src/sync/daemon/wait.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { FileState } from "../../../src/sync/plan/model.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import type { SourceSync } from "../../../src/sync/daemon/source/source.ts";
import { observedAt } from "../send/fixture.ts";
import { makeTree, removeTree, sourceAt } from "../scan/tree.ts";

let root: string;
let folder: string;
let ledger: Ledger;
let lifecycle: Lifecycle;
let listeners: Set<(activity: DaemonActivity) => void>;
let id: number;
/** Files of which only pictures remain to be read. */
let pictures: Set<string>;
/** Files that wait for another try. */
let retried: Set<string>;
/** Files to check or send. */
let pending: Set<string>;
let asked: number;
let answered: number;
let paused: boolean;
/** The last check compared nothing. */
let halted: boolean;
let unreadable: string[];
let abort: AbortController;

beforeEach(() => {
  root = makeTree({ "a.md": "text", "folder/b.md": "text", ".hidden/c.md": "text" });
  folder = mkdtempSync(join(tmpdir(), "kbsync-wait-"));
  ledger = openLedger(folder, "service");
  id = ledger.sources.open(root, "owner", "fastest").id;
  lifecycle = openLifecycle((error) => error as Error);
  listeners = new Set();
  pictures = new Set();
  pending = new Set();
  retried = new Set();
  [asked, answered, paused, halted, unreadable] = [0, Infinity, false, false, []];
  abort = new AbortController();
});
afterEach(() => {
  ledger.close();
  rmSync(folder, { recursive: true });
  removeTree(root);
});

const isIn = (below: string | undefined) => (path: string) =>
  below === undefined || path === below || path.startsWith(`${below}/`);
const wait = async (path?: string, more: Partial<WaitOptions> = {}): Promise<WaitEnd> => {
  const source = {
    id,
    rules: openRules(sourceAt(root)),
    agenda: { ask: () => (asked += 1), answered: () => answered },
    pending: (below: string | undefined) => [...pending].filter(isIn(below)),
    isPending: (each: string) => [...pending].some(isIn(each)),
    isPaused: () => paused,
    state: {
      get isHalted() {
        return halted;
      },
    },
    workAt: (each: string) => ({ work: retried.has(each) ? "retry" : "queued" }),
    hasOnlyPictures: (each: string) => pictures.has(each),
    unsent: (below: string | undefined) => [...pending].filter(isIn(below)),
    unreadable: (below: string | undefined) =>
      unreadable.filter(isIn(below)).map((at) => ({ path: at, reason: "it is inaccessible" })),
  } as unknown as SourceSync; // What a wait asks of a source.
  const parts = { lifecycle, ledger, listeners } as unknown as Parts;
  const sources = { all: () => [source] } as unknown as DaemonSources;
  const at = path === undefined ? {} : { path: join(root, path) };
  return await waitFor(parts, sources, { signal: abort.signal, ...at, ...more });
};
const add = async (path: string, state: FileState): Promise<void> =>
  await ledger.write(() => ledger.files.insert(id, `doc ${path}`, state, observedAt(path)));
/** Records trouble with a file as it is on disk now. */
const trouble = async (path: string, code: string): Promise<void> => {
  const { size: sizeBytes, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  const entry = { path, sizeBytes, mtimeMs, ctimeMs, ino };
  const what = { entry, rulesKey: 1, state: "parked", sure: true, code, message: "its words" } as const;
  await ledger.write(() => ledger.files.trouble(id, undefined, what));
};
const done = (path: string, more: Partial<DaemonActivity> = {}): void => {
  const activity = { source: root, path, action: "update", outcome: "done", durationMs: 0, ...more };
  for (const listener of listeners) listener(activity as DaemonActivity);
};
const turn = async (): Promise<void> => {
  for (let turns = 0; turns < 3; turns += 1) await new Promise(setImmediate);
};
const codes = ({ reasons }: WaitEnd): string[] => reasons.map(({ path, code }) => `${path} ${code}`);

describe("a wait", () => {
  it("ends a wait in agreement when all is acknowledged, and removes its listener", async () => {
    await add("a.md", "agreed");
    expect(await wait()).toEqual({ agreed: true, reasons: [], troubled: 0, reading: 0, readingPaths: [] });
    expect(listeners.size).toBe(0);
  });

  it("does not end in agreement when the folder of a paused source is missing", async () => {
    await add("a.md", "agreed");
    paused = true;
    removeTree(root);
    expect(codes(await wait())).toEqual([" missing"]);
  });

  it("checks the disk before it waits", async () => {
    answered = 0;
    let ended = false;
    const waiting = wait().then(() => (ended = true));
    await turn();
    expect([asked, ended]).toEqual([1, false]);
    answered = 1;
    lifecycle.changed();
    await waiting;
  });

  it("reports the number of files waited for whenever it decreases, until none is left", async () => {
    for (const path of ["a.md", "folder/b.md", "c.md"]) {
      await add(path, "agreed");
      pending.add(path);
    }
    const counts: number[] = [];
    const waiting = wait(undefined, { onWaiting: (files) => counts.push(files) });
    await turn();
    lifecycle.changed();
    expect(counts).toEqual([3]);
    pending.delete("a.md");
    lifecycle.changed();
    await turn();
    pending.clear();
    lifecycle.changed();
    expect(await waiting).toMatchObject({ agreed: true });
    expect(counts).toEqual([3, 2]);
  });

  it("waits for a source until only pictures remain to be read, and names their files", async () => {
    for (const file of ["scan.pdf", "a.md"]) pending.add(file);
    const waiting = wait();
    await turn();
    pending.delete("a.md");
    lifecycle.changed();
    let ended = false;
    void waiting.then(() => (ended = true));
    await turn();
    expect(ended).toBe(false);
    pictures.add("scan.pdf");
    lifecycle.changed();
    expect(await waiting).toMatchObject({
      agreed: true,
      reading: 1,
      readingPaths: [join(root, "scan.pdf")],
    });
  });

  it("takes the update of a file whose pictures are read, and one after that was waited for, for no trouble", async () => {
    await add("folder/b.md", "unsure");
    pictures.add("folder/b.md");
    pending = new Set(["a.md", "folder/b.md"]);
    const waiting = wait();
    await turn();
    done("a.md");
    await add("a.md", "unsure");
    lifecycle.changed();
    expect(await waiting).toMatchObject({ agreed: true, reasons: [], reading: 1 });
  });

  it("waits for pictures in a file or folder that is named", async () => {
    pictures.add("folder/scan.pdf");
    pending.add("folder/scan.pdf");
    let ended = 0;
    const named = ["folder", "folder/scan.pdf"].map((path) => wait(path).finally(() => (ended += 1)));
    await turn();
    expect(ended).toBe(0);
    await add("folder/scan.pdf", "agreed");
    pending.clear();
    lifecycle.changed();
    for (const end of await Promise.all(named)) expect(end).toMatchObject({ reading: 0, readingPaths: [] });
  });

  it("waits neither for later files nor for one that was acknowledged and changed again", async () => {
    await add("a.md", "agreed");
    pending.add("a.md");
    const waiting = wait();
    await turn();
    pending.add("later.md");
    for (const action of ["delete", "discard", "adopt", "audit"] as const) done("a.md", { action });
    done("a.md", { outcome: "refused" });
    done("a.md", { durationMs: 1_000_000 });
    done("a.md", { source: "/other" });
    let ended = false;
    void waiting.then(() => (ended = true));
    lifecycle.changed();
    await turn();
    expect(ended).toBe(false);
    done("a.md");
    lifecycle.changed();
    expect(await waiting).toMatchObject({ agreed: true });
  });

  it("ends a wait with the daemon and with its signal", async () => {
    pending.add("a.md");
    const [ending, leaving] = [wait(), wait()];
    await turn();
    abort.abort(new Error("enough"));
    await expect(leaving).rejects.toThrow("enough");
    abort = new AbortController();
    await expect(ending).rejects.toThrow("enough");
    const stopped = wait();
    await turn();
    lifecycle.end();
    await expect(stopped).rejects.toMatchObject({ code: "daemon_stopping" });
    expect(listeners.size).toBe(0);
  });

  it("refuses to wait for a path outside of all sources", async () => {
    await expect(wait("../elsewhere")).rejects.toMatchObject({ code: "outside_sources" });
  });
});

describe("what keeps from agreement", () => {
  it("returns a blocker of the source as the reason, whatever else is known", async () => {
    await add("a.md", "failed");
    await ledger.write(() => ledger.sources.setHold(id, { halted: "no folder", reason: null }));
    const end = await wait();
    expect(codes(end)).toEqual([" halted"]);
    expect(end.reasons[0]).toMatchObject({
      source: root,
      message: expect.stringContaining("no folder") as string,
    });
  });

  it("returns a blocker at once, though a file that was noticed before is not done", async () => {
    await ledger.write(() => ledger.contacts.setLoss(id, "the lists differ"));
    halted = true;
    pending.add("a.md");
    expect(codes(await wait())).toEqual([" halted"]);
  });

  it("asks again when a blocker ends, because no check has found what is waited for", async () => {
    halted = true;
    answered = 1;
    const waiting = wait();
    await turn();
    expect(asked).toBe(2);
    // The check that follows finds a new file.
    [halted, answered] = [false, 2];
    pending.add("a.md");
    let ended = false;
    void waiting.then(() => (ended = true));
    lifecycle.changed();
    await turn();
    expect(ended).toBe(false);
    pending.clear();
    lifecycle.changed();
    expect(await waiting).toMatchObject({ agreed: true });
  });

  it("does not return held deletes of a source as a blocker", async () => {
    await add("a.md", "agreed");
    await ledger.write(() => ledger.sources.setHold(id, { halted: null, reason: "many" }));
    expect(await wait("a.md")).toMatchObject({ agreed: true });
  });

  it.each([
    ["EACCES", "its words, check its mode"],
    ["EPERM", "its words, check its mode"],
    ["EIO", "its words"],
  ])(
    "returns a file that cannot be read (%s) as a reason, because no wait repairs it",
    async (code, message) => {
      await trouble("a.md", code);
      pending.add("a.md");
      retried.add("a.md");
      const end = await wait();
      expect(end).toMatchObject({ agreed: false, troubled: 1, reasons: [{ path: "a.md", code, message }] });
    },
  );

  it("waits for a file that was parked without an answer, and for one that changed since it was parked", async () => {
    await trouble("a.md", "no_answer");
    await trouble("folder/b.md", "EIO");
    retried.add("a.md");
    for (const path of ["a.md", "folder/b.md"]) {
      pending = new Set([path]);
      let ended = false;
      const waiting = wait(path).then(() => (ended = true));
      await turn();
      expect(ended).toBe(false);
      pending.clear();
      lifecycle.changed();
      await waiting;
    }
  });

  it("returns a held delete as a reason, with the command that approves it", async () => {
    await add("a.md", "held");
    expect((await wait()).reasons).toMatchObject([
      { path: "a.md", code: "held", message: expect.stringContaining("kbsync approve") as string },
    ]);
  });

  it("returns a pause as a reason for each waiting file", async () => {
    await add("a.md", "agreed");
    paused = true;
    await add("folder/b.md", "unsure");
    await ledger.write(() => ledger.operator.setPaused(id, true));
    pending = new Set(["a.md", "folder/b.md"]);
    expect(codes(await wait())).toEqual(["a.md paused", "folder/b.md paused"]);
    expect(codes(await wait("folder"))).toEqual(["folder/b.md paused"]);
  });

  it("returns an inaccessible path as a reason", async () => {
    unreadable = ["folder"];
    expect(codes(await wait())).toEqual(["folder unreadable"]);
    expect(codes(await wait("a.md"))).toEqual(["a.md not_synced"]);
  });

  it("names up to a hundred reasons, and counts the others", async () => {
    paused = true;
    pending = new Set(Array.from({ length: 102 }, (_, n) => `f${n}`));
    const { reasons, troubled } = await wait();
    expect([reasons.length, troubled]).toEqual([100, 102]);
  });
});

describe("a wait for one path", () => {
  it.each<[what: string, path: string, prepare: () => unknown, expected: string[]]>([
    ["in agreement", "a.md", async () => await add("a.md", "agreed"), []],
    ["that is not synced", "a.md", () => undefined, ["a.md not_synced"]],
    ["that the rules exclude", ".hidden/c.md", () => undefined, [".hidden/c.md left_out"]],
    ["that is skipped by its kind", "a.md", async () => await add("a.md", "skipped"), ["a.md skipped"]],
    ["of a folder", "folder", () => undefined, []],
    ["of a folder that the rules exclude", ".hidden", () => undefined, [".hidden left_out"]],
  ])("returns the reasons for a path %s", async (_what, path, prepare, expected) => {
    await prepare();
    const end = await wait(path);
    expect([codes(end), end.agreed]).toEqual([expected, expected.length === 0]);
  });

  it("takes a path for agreed that was acknowledged during the wait, though it is gone from the ledger", async () => {
    pending.add("a.md");
    const waiting = wait("a.md");
    await turn();
    done("a.md");
    lifecycle.changed();
    expect(await waiting).toMatchObject({ agreed: true });
  });

  it("reports a path that never existed as unknown", async () => {
    expect(await wait("none.md")).toEqual({
      agreed: true,
      reasons: [],
      troubled: 0,
      reading: 0,
      readingPaths: [],
      unknown: true,
    });
  });

  it.each<[what: string, prepare: () => unknown]>([
    ["is in the ledger", async () => await add("none/x.md", "agreed")],
    [
      "is in the activity",
      async () =>
        await ledger.write(() =>
          ledger.activity.add({
            atMs: 1,
            source: id,
            path: "none/x.md",
            from: undefined,
            docId: undefined,
            action: "delete",
            outcome: "done",
            durationMs: 0,
            message: undefined,
          }),
        ),
    ],
  ])("does not report a missing path as unknown that %s", async (_what, prepare) => {
    await prepare();
    expect(await wait("none")).toEqual({
      agreed: true,
      reasons: [],
      troubled: 0,
      reading: 0,
      readingPaths: [],
    });
  });
});
