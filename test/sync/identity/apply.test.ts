import { expect, it } from "vitest";
import { applyComparison, type ApplySource } from "../../../src/sync/identity/apply.ts";
import { NO_MEMORY } from "../../../src/sync/identity/compare.ts";
import type { Gathered } from "../../../src/sync/identity/situation.ts";
import { bytesTag, fileTag, markedDescription, sourceTag, writerTag } from "../../../src/sync/plan/marker.ts";
import type { ActionContext } from "../../../src/sync/send/context.ts";

const SIGNATURE = { source: sourceTag("docs"), writer: writerTag("instance", "machine", "/state", "/docs") };
const MARKER = { ...SIGNATURE, file: fileTag("b.md"), bytes: bytesTag("B", 1) };

/** Applies that a document is the one of b.md, which the ledger has as that of a.md. Returns the paths that get it. */
async function pathsGiven(busy: string): Promise<readonly string[]> {
  const paths: string[] = [];
  const context = {
    ledger: {
      write: (change: () => void) => Promise.resolve(change()),
      files: {
        byDoc: () => ({ path: "a.md" }),
        assign: (_source: number, { entry }: { entry: { path: string } }) => paths.push(entry.path),
        warn: () => undefined,
      },
    },
  } as unknown as ActionContext;
  const source = {
    id: 1,
    rules: { source: { settings: {} } },
    signature: SIGNATURE,
    isBusy: (path: string) => path === busy,
    hint: () => undefined,
  } as unknown as ApplySource;
  const gathered = {
    situation: { rows: [], isDistrusted: true },
    rows: new Map(),
    resources: new Map([["d1", { docId: "d1", title: "b", scope: {}, settings: {} }]]),
    descriptions: new Map([["d1", markedDescription("b", MARKER)]]),
    entries: new Map(),
    altered: [],
    shown: 0,
  } as unknown as Gathered;
  const verdicts = [{ kind: "update", path: "b.md", docId: "d1" }] as const;
  await applyComparison(
    context,
    source,
    gathered,
    { holds: [], verdicts, memory: NO_MEMORY },
    {
      repair: true,
      isApproved: false,
      isKnownGone: () => false,
      lagMs: 0,
      signal: new AbortController().signal,
    },
  );
  return paths;
}

it("a document goes to the file that its marker names", async () => {
  expect(await pathsGiven("")).toEqual(["b.md"]);
});

it.each(["a.md", "b.md"])("a document stays while %s is being sent", async (busy) => {
  expect(await pathsGiven(busy)).toEqual([]);
});
