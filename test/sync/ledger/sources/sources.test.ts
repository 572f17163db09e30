import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Observed } from "../../../../src/sync/ledger/files/observed.ts";
import { openLedger, type Ledger } from "../../../../src/sync/ledger/ledger.ts";
import type { FileState } from "../../../../src/sync/plan/model.ts";

let dir: string;
let ledger: Ledger;
let source: number;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "kbsync-sources-"));
  ledger = openLedger(dir, "service");
  await ledger.write(() => {
    source = ledger.sources.open("/docs", "owner", "fastest").id;
  });
});
afterEach(() => {
  ledger.close();
  rmSync(dir, { recursive: true });
});

const observed = (path: string): Observed => ({
  entry: { path, sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 },
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
/** Adds rows of files, one per state. */
const add = async (...states: readonly FileState[]): Promise<void> =>
  ledger.write(() => {
    for (const state of states) ledger.files.insert(source, `doc ${state}`, state, observed(`${state}.txt`));
  });
const statesNow = (): FileState[] => [...ledger.files.all(source)].map(({ state }) => state).toSorted();

describe("approvals", () => {
  it("an approval of a source's removal is void when the source is configured again", async () => {
    await add("agreed");
    await ledger.write(() => {
      ledger.sources.keepActive([]);
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source)).toMatchObject({ active: false, approved: true });
    await ledger.write(() => ledger.sources.open("/docs", "owner", "fastest"));
    expect(ledger.sources.get(source)).toMatchObject({ active: true, approved: false });
  });

  it("an approval of another root survives reopening the source, as every start does", async () => {
    await ledger.write(() => {
      ledger.sources.setHold(source, {
        halted: "replaced",
        reason: null,
        root: { dev: 1, ino: 2 },
        files: 3,
      });
      ledger.sources.approve(source);
      ledger.sources.open("/docs", "owner", "fastest");
    });
    expect(ledger.sources.get(source)).toMatchObject({ approved: true, haltFiles: 3 });
  });

  it("an approval of a loss does not cover held deletes, nor another root", async () => {
    await add("agreed", "held");
    await ledger.write(() => {
      ledger.sources.setHold(source, {
        halted: "replaced",
        reason: null,
        root: { dev: 1, ino: 2 },
        files: 3,
      });
      ledger.contacts.setLoss(source, "the service has lost everything");
      ledger.sources.approve(source);
    });
    expect(ledger.contacts.loss(source)).toMatchObject({ agreed: true });
    expect(ledger.sources.get(source).approved).toBe(false);
    expect(statesNow()).toEqual(["agreed", "held"]);
    // The other root keeps the loss from being compared: the next approval is one of the root.
    expect(ledger.sources.get(source)).toMatchObject({ lost: null, halted: "replaced" });
    await ledger.write(() => ledger.sources.approve(source));
    expect(ledger.sources.get(source).approved).toBe(true);
    expect(statesNow()).toEqual(["agreed", "doomed"]);
  });

  it("shows a loss that was agreed to until it was compared, if the folder is the same one", async () => {
    await ledger.write(() => {
      ledger.contacts.setLoss(source, "the service has lost everything");
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source)).toMatchObject({ lost: "the service has lost everything" });
  });

  it("an approval of a source's removal covers its resources, though the service had lost some", async () => {
    await add("held");
    await ledger.write(() => {
      ledger.contacts.setLoss(source, "the service has lost everything");
      ledger.sources.keepActive([]);
      ledger.sources.approve(source);
    });
    expect(ledger.contacts.loss(source)).toMatchObject({ agreed: false });
    expect(ledger.sources.get(source).approved).toBe(true);
  });

  it("a missing folder cannot be approved", async () => {
    await ledger.write(() => {
      ledger.sources.setHold(source, { halted: "missing", reason: null });
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source).approved).toBe(false);
  });
});

it("counts files with a resource in any state, except those whose delete is agreed to", async () => {
  await add("agreed", "unsure", "failed", "parked", "skipped", "held", "doomed");
  await ledger.write(() => {
    const what = { rulesKey: 1, state: "failed", sure: true, code: "refused", message: "" } as const;
    ledger.files.trouble(source, undefined, { entry: observed("never.txt").entry, ...what });
  });
  expect(ledger.sources.withResource(source)).toBe(6);
});

it("fingerprints the held rows: as many other rows have another fingerprint", async () => {
  await add("agreed", "held", "doomed");
  const mark = ledger.sources.heldMark(source);
  const [agreed, held] = ["agreed", "held"].map(
    (state) => [...ledger.files.all(source)].find((row) => row.state === state)?.id ?? 0,
  );
  await ledger.write(() => ledger.files.hold(agreed ?? 0));
  const both = ledger.sources.heldMark(source);
  await ledger.write(() => ledger.files.setState(held ?? 0, "agreed"));
  expect(new Set([mark, both, ledger.sources.heldMark(source)]).size).toBe(3);
  await ledger.write(() => {
    ledger.files.hold(held ?? 0);
    ledger.files.setState(agreed ?? 0, "agreed");
  });
  expect(ledger.sources.heldMark(source)).toBe(mark);
});

it("a source gets another folder with all its data, and the row of that folder gets the old one", async () => {
  await add("agreed");
  await ledger.write(() => ledger.sources.repath(source, "/moved"));
  expect(ledger.sources.get(source)).toMatchObject({ path: "/moved", agreed: 1 });
  const other = ledger.sources.open("/docs", "owner", "fastest").id;
  expect(other).not.toBe(source);
  await ledger.write(() => ledger.sources.repath(source, "/docs"));
  expect([ledger.sources.get(source).path, ledger.sources.get(other).path]).toEqual(["/docs", "/moved"]);
});

it("a source that left the configuration is listed with its remaining resources", async () => {
  expect([ledger.sources.isEmpty(source), ledger.sources.withFiles()]).toEqual([true, []]);
  await add("agreed", "failed", "held");
  await ledger.write(() => {
    ledger.files.insert(source, null, "skipped", observed("empty.txt"));
    ledger.intents.delete(source, "gone.txt", "doc gone");
    ledger.sources.keepActive([]);
  });
  expect([ledger.sources.isEmpty(source), ledger.sources.active()]).toEqual([false, []]);
  expect(ledger.sources.withFiles()).toMatchObject([{ id: source, active: false }]);
  expect(ledger.sources.removed()).toMatchObject([{ id: source, resources: 4 }]);
});

it("a source that left the configuration is listed if only a create is left", async () => {
  await ledger.write(() => ledger.sources.keepActive([]));
  expect(ledger.sources.removed()).toEqual([]);
  await ledger.write(() => void ledger.intents.create(source, "key", 1, observed("a.txt")));
  expect(ledger.sources.removed()).toMatchObject([{ resources: 0 }]);
});

it("a folder that was never synced has no row, and a synced one is found under another owner", () => {
  expect(ledger.sources.peek("/other", "owner", "fastest")).toBeUndefined();
  expect(ledger.sources.peek("/docs", "another", "moderate")).toMatchObject({
    id: source,
    ownerId: "another",
    tier: "moderate",
  });
  expect(ledger.sources.get(source)).toMatchObject({ ownerId: "owner", tier: "fastest" });
});

it("counts deletes that began while they matter, and none from the future of a wrong clock", async () => {
  await ledger.write(() => {
    ledger.sources.countDeletes(source, 100, 2, 0);
    ledger.sources.countDeletes(source, 200, 3, 0);
  });
  expect([ledger.sources.deletedSince(source, 99), ledger.sources.deletedSince(source, 100)]).toEqual([5, 3]);
  await ledger.write(() => ledger.sources.countDeletes(source, 150, 1, 100));
  expect(ledger.sources.deletedSince(source, 0)).toBe(1);
});

it("returns a source's backlog, root, hold and folder state as they were set", async () => {
  await add("agreed", "failed", "unsure");
  await ledger.write(() => {
    ledger.sources.setBacklog(source, 5, 1);
    ledger.sources.setRoot(source, { dev: 3, ino: 4 });
    ledger.sources.setHold(source, { halted: "another", reason: "many", root: { dev: 5, ino: 6 }, files: 7 });
    ledger.sources.setUnreadable(source, 8);
    ledger.sources.setCollectionId("fastest", "c1");
    ledger.sources.setCollectionId("fastest", "c2");
  });
  expect(ledger.sources.get(source)).toMatchObject({
    backlog: 5,
    backlogAgreed: 1,
    found: 3 - 1 + 5,
    root: { dev: 3, ino: 4 },
    halted: "another",
    holdReason: "many",
    haltRoot: { dev: 5, ino: 6 },
    haltFiles: 7,
    unreadable: 8,
  });
  expect([ledger.sources.collectionId("fastest"), ledger.sources.collectionId("moderate")]).toEqual([
    "c2",
    undefined,
  ]);
  await ledger.write(() => ledger.sources.setHold(source, { halted: null, reason: null }));
  expect(ledger.sources.get(source)).toMatchObject({ halted: null, haltRoot: undefined, haltFiles: 0 });
});
