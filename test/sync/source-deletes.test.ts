import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ActionContext, ActionSource } from "../../src/sync/actions/context.ts";
import { openLedger, type Ledger } from "../../src/sync/ledger/ledger.ts";
import type { Deletion } from "../../src/sync/pass/deletes.ts";
import type { Remote } from "../../src/sync/remote/remote.ts";
import { openSourceDeletes, type SourceDeletes } from "../../src/sync/source-deletes.ts";
import { openUnderWay } from "../../src/sync/under-way.ts";

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

/** The deletes of a source whose service does whatever it is asked. `pushed` are those put into the queue. */
function deletesOf(id: number): { deletes: SourceDeletes; pushed: Deletion[]; run: () => Promise<void> } {
  const pushed: Deletion[] = [];
  const underWay = openUnderWay();
  const remote: Pick<Remote, "delete"> = {
    delete: async () => await Promise.resolve({ kind: "done", value: {} }),
  };
  const { signal } = new AbortController();
  const context = {
    ledger,
    remote,
    signal,
    now: Date.now,
    report: () => undefined,
  } as unknown as ActionContext;
  const deletes = openSourceDeletes({
    row: { id },
    context,
    source: { id } as ActionSource,
    underWay,
    once: false,
    isHeld: () => false,
    push: (deletions) => pushed.push(...deletions),
    wakeAt: () => undefined,
  });
  const run = async (): Promise<void> => {
    for (const deletion of pushed.splice(0)) {
      await deletes.send(deletion);
      underWay.endDelete(deletion);
    }
  };
  return { deletes, pushed, run };
}

it("a delete that was just done is not begun again, though its note is not committed yet", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.delete(id, "a.txt", "doc"));
  const { deletes, pushed, run } = deletesOf(id);
  deletes.beginLeft();
  expect(pushed).toHaveLength(1);
  await run();
  deletes.beginLeft();
  expect(pushed).toEqual([]);
});
