import { describe, expect, it } from "vitest";
import { askWithReceipt, joinReceipts, receiptLine, type AskLedger } from "../../src/mcp/receipt.ts";
import type { FolderReceipt, LedgerReceiptRequest, Receipt } from "../../src/wire/receipt.ts";

const FOLDER: FolderReceipt = {
  folder: "/notes",
  ownerId: "ann",
  collectionId: "c",
  asOf: "2026-01-01T00:00:00.000Z",
  current: true,
  pending: 0,
  failed: 0,
  held: 0,
  unreadable: 0,
  noticing: "watched",
};
const NONE = { waiting: 0, failed: 0, withoutVectors: 0 };
const OF_SERVICE: Receipt = {
  current: true,
  folders: [],
  foldersUnknown: true,
  documents: NONE,
  changed: [],
};
const { signal } = new AbortController();

/** A ledger that knows this folder, and what it was asked. */
function ledger(
  folder: Partial<FolderReceipt>,
  changed: readonly string[] = [],
): { readonly ask: AskLedger; readonly asked: LedgerReceiptRequest[] } {
  const asked: LedgerReceiptRequest[] = [];
  const ask: AskLedger = async (request) => {
    asked.push(request);
    return { folders: request.scopes?.length === 0 ? [] : [{ ...FOLDER, ...folder }], changed };
  };
  return { ask, asked };
}

describe("an answer of a service that knows no folder", () => {
  const ask = async (known: AskLedger | undefined, receipt: Receipt | undefined, waitSeconds?: number) => {
    const waits: (number | undefined)[] = [];
    const answered = await askWithReceipt(
      known,
      { scopes: [{ documentId: "d" }], waitSeconds, signal },
      async (seconds) => waits.push(seconds),
      () => ({ receipt, cited: ["d", "d"] }),
    );
    return { ...answered, waits };
  };

  it("an answer of a service that knows no folder gets the folders as they were before the question, and what has changed after it", async () => {
    const { ask: known, asked } = ledger({ pending: 2, current: false }, ["d"]);
    const { receipt, waits } = await ask(known, OF_SERVICE);
    expect(receipt).toMatchObject({ current: false, folders: [{ pending: 2 }], changed: ["d"] });
    expect(asked).toEqual([
      { scopes: [{ documentId: "d" }], cited: [] },
      { scopes: [], cited: ["d"] },
    ]);
    expect(waits).toEqual([undefined]);
  });

  it("a wait for a fresh answer runs here first, then at the service for the time left", async () => {
    const { ask: known, asked } = ledger({});
    const { receipt, waits } = await ask(known, OF_SERVICE, 20);
    expect(receipt.current).toBe(true);
    expect(asked[0]).toMatchObject({ waitSeconds: 20 });
    expect(waits[0]).toBeLessThanOrEqual(20);
    expect(waits[0]).toBeGreaterThan(15);
  });

  it("an answer of a service that knows no folder is current only if something is known", async () => {
    expect((await ask(undefined, undefined)).receipt.current).toBe(false);
    expect((await ask(undefined, OF_SERVICE)).receipt.current).toBe(true);
    expect((await ask(ledger({}).ask, undefined)).receipt.current).toBe(true);
    expect((await ask(ledger({}).ask, { ...OF_SERVICE, current: false })).receipt.current).toBe(false);
  });

  it("says that folders are unknown only where neither a daemon nor a ledger answers", async () => {
    expect((await ask(undefined, OF_SERVICE)).receipt.foldersUnknown).toBe(true);
    expect((await ask(undefined, undefined)).receipt.foldersUnknown).toBe(true);
    expect((await ask(ledger({}).ask, OF_SERVICE)).receipt).not.toHaveProperty("foldersUnknown");
  });

  it("leaves the receipt of a service alone that knows its folders", async () => {
    const receipt = { ...OF_SERVICE, folders: [FOLDER], changed: ["d"] };
    const { ask: known, asked } = ledger({ failed: 1 });
    expect((await ask(known, receipt)).receipt).toEqual(receipt);
    expect(asked).toHaveLength(1);
  });
});

it("joins receipts: the counts are added, folders are listed once", () => {
  const one = { ...OF_SERVICE, folders: [FOLDER], documents: { ...NONE, waiting: 1 }, changed: ["a"] };
  const other: Receipt = { ...one, current: false, changed: ["a", "b"], gaveUp: "timeout" };
  expect(joinReceipts([one, other])).toEqual({
    current: false,
    folders: [FOLDER],
    foldersUnknown: true,
    documents: { ...NONE, waiting: 2 },
    changed: ["a", "b"],
    gaveUp: "timeout",
  });
  expect(joinReceipts([one, undefined])).toBeUndefined();
});

it.each<[string, Partial<Receipt>, boolean, string | undefined]>([
  ["nothing where all is well", { folders: [FOLDER] }, true, undefined],
  [
    "counts",
    { folders: [{ ...FOLDER, pending: 1, failed: 2, held: 1, unreadable: 1 }], changed: ["d"] },
    false,
    "1 file is waiting to be sent, 2 files failed, 1 deleted file is still found, 1 file or folder could not be read, 1 cited file has changed or is gone",
  ],
  [
    "no word of a daemon that nobody asked to wait",
    { folders: [{ ...FOLDER, noticing: "stopped" }] },
    false,
    undefined,
  ],
  [
    "that nothing was waited for without a daemon",
    { current: false, folders: [{ ...FOLDER, noticing: "stopped" }] },
    true,
    "no daemon runs, so newer changes are unknown",
  ],
  ["nothing of unknown folders that nobody asked to wait", { foldersUnknown: true }, false, undefined],
  [
    "that folders are unknown without a daemon",
    { foldersUnknown: true },
    true,
    "no daemon answers here, so changes of synced folders are unknown",
  ],
  [
    "what was late",
    { current: false, documents: { ...NONE, waiting: 2, withoutVectors: 3 }, gaveUp: "timeout" },
    true,
    "2 documents are being read, 3 passages are not found by meaning yet, the wait was too short",
  ],
])("says in a line: %s", (_title, change, isFresh, words) => {
  const { foldersUnknown: _, ...known } = OF_SERVICE;
  const line = receiptLine({ ...known, ...change }, isFresh);
  expect(line).toBe(words && `Not everything here is up to date: ${words}.`);
});
