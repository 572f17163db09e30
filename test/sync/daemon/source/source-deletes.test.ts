import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ActionContext, ActionSource } from "../../../../src/sync/send/context.ts";
import type { Observed } from "../../../../src/sync/ledger/files/observed.ts";
import { openLedger, type Ledger } from "../../../../src/sync/ledger/ledger.ts";
import type { Deletion } from "../../../../src/sync/ledger/intents/deletes.ts";
import type { Remote } from "../../../../src/sync/send/remote/remote.ts";
import { openSourceDeletes, type SourceDeletes } from "../../../../src/sync/daemon/source/source-deletes.ts";
import { TIMING } from "../../../../src/sync/plan/timing.ts";

let dir: string;
let ledger: Ledger;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kbsync-source-deletes-"));
  ledger = openLedger(dir, "s");
});
afterEach(() => {
  ledger.abandon();
  rmSync(dir, { recursive: true, force: true });
});

const OBSERVED: Observed = {
  entry: { path: "a.txt", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 },
  rulesKey: 1,
  hash: "",
  digest: "",
  title: "a",
  label: "",
  extractorVersion: 1,
  shape: {
    kind: "content",
    tier: "fastest",
    ownerId: "o",
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
  },
  fileUrl: undefined,
};
const DONE = { kind: "done", value: {} } as const;

/** The deletes of a source whose service does everything. `pushed` are those put into the queue. */
function deletesOf(
  id: number,
  {
    isAwaited = () => false,
    isHeld = () => false,
    now = Date.now,
    remote = { delete: async () => await Promise.resolve(DONE) },
  }: Partial<{
    isAwaited: (path: string) => boolean;
    isHeld: () => boolean;
    now: () => number;
    remote: Partial<Remote>;
  }> = {},
): { deletes: SourceDeletes; pushed: Deletion[]; wakes: number[]; run: () => Promise<void> } {
  const pushed: Deletion[] = [];
  const wakes: number[] = [];
  const { signal } = new AbortController();
  const context = {
    ledger,
    remote,
    signal,
    yieldSlot: async () => {},
    now,
    timing: TIMING,
    report: () => undefined,
  } as unknown as ActionContext;
  const deletes = openSourceDeletes({
    row: { id },
    context,
    source: { id } as ActionSource,
    once: false,
    isHeld,
    isAwaited,
    push: (deletions) => pushed.push(...deletions),
    wakeAt: (atMs) => wakes.push(atMs),
    onEnd: () => undefined,
  });
  const run = async (): Promise<void> => {
    for (const deletion of pushed.splice(0)) await deletes.send(deletion);
  };
  return { deletes, pushed, wakes, run };
}

it("a delete that was just done does not begin again, though its note is not committed yet", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  const { deletes, pushed, run } = deletesOf(id);
  deletes.beginLeft();
  expect(pushed).toHaveLength(1);
  await run();
  deletes.beginLeft();
  expect(pushed).toEqual([]);
});

it("a delete whose file is rewritten while it waits is sent only after that file has its own resource", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  let isAwaited = false;
  let sent = 0;
  const remote: Pick<Remote, "delete"> = {
    delete: async (_docId, _signal, mayLeave) => {
      // The file is written while the request waits at the gate.
      isAwaited = true;
      if (mayLeave?.() === false) {
        return await Promise.resolve({
          kind: "later",
          acted: "no",
          blame: "service",
          reason: "no longer wanted",
        });
      }
      sent += 1;
      return DONE;
    },
  };
  const { deletes, pushed, run } = deletesOf(id, { isAwaited: () => isAwaited, remote });
  deletes.beginLeft();
  await run();
  expect(sent).toBe(0);
  // Neither a pass nor a check of the whole source begins with it while the file has no resource.
  deletes.beginPutOff();
  deletes.beginLeft();
  expect(pushed).toEqual([]);

  ledger.note(() => ledger.files.insert(id, "new", "agreed", OBSERVED));
  deletes.beginPutOff("a.txt");
  await run();
  ledger.flush();
  expect([sent, ledger.intents.isDeleted("doc"), ledger.intents.deletes(id)]).toEqual([1, true, []]);
});

it("a delete whose name another file took is sent only when the service certainly has what that file's row says", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => {
    ledger.intents.delete(id, "a.txt", "doc");
    ledger.files.insert(id, "moved", "unsure", OBSERVED);
  });
  let sent = 0;
  const remote: Pick<Remote, "delete"> = {
    delete: async (_docId, _signal, mayLeave) => {
      if (mayLeave?.() === false)
        return await Promise.resolve({ kind: "later", acted: "no", blame: "service", reason: "left" });
      sent += 1;
      return DONE;
    },
  };
  const { deletes, run } = deletesOf(id, { isAwaited: () => true, remote });
  deletes.beginLeft();
  await run();
  expect(sent).toBe(0);

  await ledger.write(() => ledger.files.agree(ledger.files.living(id, "a.txt")?.id ?? 0, "moved", OBSERVED));
  deletes.beginPutOff("a.txt");
  await run();
  expect(sent).toBe(1);
});

it("a delete is sent at once when its file receives a resource just after it gave way to that file", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  // The file's job ends between the last check and the note that the delete waits for it.
  const awaited = [false, true, true];
  const remote: Pick<Remote, "delete"> = {
    delete: async (_docId, _signal, mayLeave) =>
      await Promise.resolve(
        mayLeave?.() === false
          ? { kind: "later", acted: "no", blame: "service", reason: "no longer wanted" }
          : DONE,
      ),
  };
  const { deletes, pushed, run } = deletesOf(id, { isAwaited: () => awaited.shift() ?? false, remote });
  deletes.beginLeft();
  await run();
  expect(awaited).toEqual([]);
  expect(pushed).toHaveLength(1);
  await run();
  ledger.flush();
  expect([ledger.intents.isDeleted("doc"), ledger.intents.deletes(id)]).toEqual([true, []]);
});

it("a delete of a resource that a file has received is not started again", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "b.txt", "doc"));
  const { deletes, pushed, run } = deletesOf(id);
  deletes.beginLeft();
  await ledger.write(() => ledger.files.insert(id, "doc", "agreed", OBSERVED));
  await run();
  ledger.flush();
  expect([pushed, deletes.hasJobs(), ledger.intents.deletes(id)]).toEqual([[], false, []]);
});

it("refused deletes that are due wait while nothing may be sent", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  let isHeld = false;
  let nowMs = 0;
  const remote: Partial<Remote> = {
    delete: async () => await Promise.resolve({ kind: "refused", code: "forbidden", message: "no" }),
  };
  const { deletes, pushed, wakes, run } = deletesOf(id, { remote, isHeld: () => isHeld, now: () => nowMs });
  deletes.beginLeft();
  await run();
  const [dueMs = Infinity] = wakes.splice(0);
  isHeld = true;
  nowMs = dueMs;
  deletes.beginDue();
  expect([pushed, wakes]).toEqual([[], []]);
  isHeld = false;
  deletes.beginDue();
  expect([pushed.length, wakes]).toEqual([1, []]);
});

it("a refused delete is sent again after a minute, then ever later, and at once when a person asks for its folder", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "d/a.txt", "doc"));
  let nowMs = 0;
  const remote: Partial<Remote> = {
    delete: async () => await Promise.resolve({ kind: "refused", code: "forbidden", message: "no" }),
  };
  const { deletes, pushed, wakes, run } = deletesOf(id, { remote, now: () => nowMs });
  deletes.beginLeft();
  for (const afterMs of [60_000, 120_000, 240_000]) {
    await run();
    expect(wakes.splice(0)).toEqual([nowMs + afterMs]);
    nowMs += afterMs - 1;
    deletes.beginDue();
    expect([pushed, wakes.splice(0)]).toEqual([[], [nowMs + 1]]);
    nowMs += 1;
    deletes.beginDue();
    expect(pushed).toHaveLength(1);
  }
  await run();
  deletes.retry("e");
  deletes.beginDue();
  expect(pushed).toEqual([]);
  deletes.retry("d");
  deletes.beginDue();
  expect(pushed).toHaveLength(1);
});

it("two deletes of one path have jobs until both are done, and wait since they began", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  let nowMs = 10;
  const { deletes } = deletesOf(id, { now: () => nowMs });
  const [one, other] = [1, 2].map((row) => ({ id: row, path: "a", docId: `doc ${row}` }));
  if (one === undefined || other === undefined) throw new Error("two deletes");
  deletes.begin([one]);
  nowMs = 20;
  deletes.begin([other]);
  expect([deletes.hasJobs(), deletes.hasJob("a"), deletes.hasJob("b"), deletes.oldestMs()]).toEqual([
    true,
    true,
    false,
    10,
  ]);
  await deletes.send(one);
  expect([[...deletes.jobPaths()], deletes.oldestMs()]).toEqual([["a"], 20]);
  await deletes.send(other);
  expect([deletes.hasJobs(), deletes.hasJob("a"), deletes.oldestMs()]).toEqual([false, false, undefined]);
});

it("a resource that the service still shows half a minute after its delete is deleted again, and reported", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  vi.useFakeTimers();
  try {
    const read = { kind: "done", value: { _id: "doc", isDeleted: false } };
    const remote = {
      delete: async () => await Promise.resolve(DONE),
      read: async () => await Promise.resolve(read),
    } as unknown as Remote;
    const { deletes, wakes, run } = deletesOf(id, { remote });
    deletes.beginLeft();
    await run();
    ledger.flush();
    expect(ledger.intents.deletes(id)).toEqual([]);
    await vi.advanceTimersByTimeAsync(30_000);
    await vi.waitFor(() => expect(wakes).toHaveLength(1));
    ledger.flush();
    expect(ledger.intents.deletes(id)).toMatchObject([{ path: "a.txt", docId: "doc" }]);
  } finally {
    vi.useRealTimers();
  }
});
