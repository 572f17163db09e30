import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Observed } from "../../../src/sync/ledger/files.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { FileState } from "../../../src/sync/plan/model.ts";

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
/** Rows of files, one a state. */
const add = async (...states: readonly FileState[]): Promise<void> =>
  ledger.write(() => {
    for (const state of states) ledger.files.insert(source, `doc ${state}`, state, observed(`${state}.txt`));
  });
const statesNow = (): FileState[] => [...ledger.files.all(source)].map(({ state }) => state).toSorted();

describe("an approval", () => {
  it("of the end of a source is void when the source is put back into the configuration", async () => {
    await add("agreed");
    await ledger.write(() => {
      ledger.sources.keepActive([]);
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source)).toMatchObject({ active: false, approved: true });
    await ledger.write(() => ledger.sources.open("/docs", "owner", "fastest"));
    expect(ledger.sources.get(source)).toMatchObject({ active: true, approved: false });
  });

  it("of another root stays when the source is opened again, as every start does", async () => {
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

  it("of what the service lost says nothing of held deletes, nor of another root", async () => {
    await add("agreed", "held");
    await ledger.write(() => {
      ledger.sources.setHold(source, {
        halted: "replaced",
        reason: null,
        root: { dev: 1, ino: 2 },
        files: 3,
      });
      ledger.drift.setLoss(source, "the service has lost everything");
      ledger.sources.approve(source);
    });
    expect(ledger.drift.loss(source)).toMatchObject({ agreed: true });
    expect(ledger.sources.get(source).approved).toBe(false);
    expect(statesNow()).toEqual(["agreed", "held"]);
    await ledger.write(() => {
      ledger.drift.setLoss(source, undefined);
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source).approved).toBe(true);
    expect(statesNow()).toEqual(["agreed", "doomed"]);
  });

  it("of the end of a source that left goes to its resources, though the service had lost some", async () => {
    await add("held");
    await ledger.write(() => {
      ledger.drift.setLoss(source, "the service has lost everything");
      ledger.sources.keepActive([]);
      ledger.sources.approve(source);
    });
    expect(ledger.drift.loss(source)).toMatchObject({ agreed: false });
    expect(ledger.sources.get(source).approved).toBe(true);
  });

  it("cannot be given to a missing folder", async () => {
    await ledger.write(() => {
      ledger.sources.setHold(source, { halted: "missing", reason: null });
      ledger.sources.approve(source);
    });
    expect(ledger.sources.get(source).approved).toBe(false);
  });
});

it("counts files with a resource in whatever state, but for those whose delete is agreed to", async () => {
  await add("agreed", "unsure", "failed", "parked", "skipped", "held", "doomed");
  await ledger.write(() => {
    const what = { rulesKey: 1, state: "failed", sure: true, code: "refused", message: "" } as const;
    ledger.files.trouble(source, undefined, { entry: observed("never.txt").entry, ...what });
  });
  expect(ledger.sources.withResource(source)).toBe(6);
});

it("marks the very rows that are held: others in their number have another mark", async () => {
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
