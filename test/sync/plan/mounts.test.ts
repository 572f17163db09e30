import { expect, it } from "vitest";
import { holdsKnownFiles } from "../../../src/sync/daemon/pass/compare.ts";
import type { FileState, KnownFile } from "../../../src/sync/plan/model.ts";

const row = (ino: number, state: FileState = "agreed", docId: string | null = `doc${ino}`): KnownFile => ({
  id: ino,
  path: `disk/${ino}.md`,
  docId,
  state,
  sizeBytes: 1,
  mtimeMs: 1,
  ctimeMs: 1,
  ino,
  rulesKey: 1,
});
const rows = (count: number): KnownFile[] => Array.from({ length: count }, (_, ino) => row(ino));

it.each<{ name: string; rows: KnownFile[]; there: Record<string, number>; holds: boolean }>([
  { name: "no file is known", rows: [], there: {}, holds: true },
  { name: "every file is there as it was", rows: rows(2), there: { 0: 0, 1: 1 }, holds: true },
  { name: "every file is there, copied", rows: rows(2), there: { 0: 8, 1: 9 }, holds: true },
  { name: "half of them are there as they were", rows: rows(2), there: { 0: 0 }, holds: true },
  { name: "fewer than half are there as they were", rows: rows(3), there: { 0: 0 }, holds: false },
  { name: "most have another file of their name", rows: rows(3), there: { 0: 7, 1: 8 }, holds: false },
  { name: "the only one is gone", rows: rows(1), there: {}, holds: false },
  {
    name: "what is gone has no resource, or was decided about",
    rows: [row(0), row(1, "failed", null), row(2, "held"), row(3, "doomed")],
    there: { 0: 9 },
    holds: true,
  },
])(
  "decides whether a mount holds the ledger's files or hides them: $name",
  ({ rows: known, there, holds }) => {
    const inos = new Map(Object.entries(there).map(([name, ino]) => [`disk/${name}.md`, { ino }]));
    expect(holdsKnownFiles(known, (path) => inos.get(path))).toBe(holds);
  },
);
