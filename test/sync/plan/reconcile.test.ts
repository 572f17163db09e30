import { describe, expect, it } from "vitest";
import type { Difference, FileState, KnownFile, Scan, ScanEntry } from "../../../src/sync/plan/model.ts";
import { reconcile } from "../../../src/sync/plan/reconcile.ts";

const KEY = 7;

interface Disk {
  readonly path: string;
  readonly ino: number;
  readonly mtimeMs?: number;
  readonly ctimeMs?: number;
  readonly sizeBytes?: number;
}

const entry = ({ path, ino, mtimeMs = 1, ctimeMs = 1, sizeBytes = 5 }: Disk): ScanEntry => ({
  path,
  ino,
  mtimeMs,
  ctimeMs,
  sizeBytes,
});
const row = (id: number, disk: Disk, more: Partial<KnownFile> = {}): KnownFile => ({
  ...entry(disk),
  id,
  docId: `doc${id}`,
  state: "agreed",
  rulesKey: KEY,
  ...more,
});
const scan = (entries: readonly Disk[], more: Partial<Scan> = {}): Scan => ({
  root: { dev: 1, ino: 1 },
  entries: entries.map(entry),
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
  ...more,
});

/** The difference in short words, sorted. */
function words(difference: Difference): string[] {
  return [
    ...difference.candidates.map(
      ({ entry: { path }, known, from }) =>
        `read ${path}${known ? ` #${known.id}` : ""}${from ? ` from ${from}` : ""}`,
    ),
    ...difference.returned.map(({ path }) => `returned ${path}`),
    ...difference.gone.map(({ path, id }) => `gone ${path} #${id}`),
    ...difference.forgotten.map(({ path }) => `forgotten ${path}`),
    ...difference.refused.map(
      ({ path, reason, known }) => `refused ${path}: ${reason}${known ? ` #${known.id}` : ""}`,
    ),
    ...difference.skipped.map(
      ({ entry: { path }, reason, known }) => `skipped ${path}${known ? ` #${known.id}` : ""}: ${reason}`,
    ),
  ].toSorted();
}

const a = { path: "a", ino: 1 };
const b = { path: "b", ino: 2 };
const empty = { ...a, sizeBytes: 0 };
const archiveSkip = { skipped: [{ entry: entry({ ...a, ino: 8 }), reason: "archive" }] };
/** A scan that finds that `a` is an archive. */
const archive = scan([], { skipped: [{ entry: entry(a), reason: "archive" }] });
/** A row without a resource. */
const bare = (id: number, disk: Disk, state: FileState): KnownFile => row(id, disk, { state, docId: null });

describe("reconcile", () => {
  it.each<{ name: string; disk: Scan; rows: KnownFile[]; expected: string[] }>([
    { name: "nothing on both sides", disk: scan([]), rows: [], expected: [] },
    { name: "an unchanged file", disk: scan([a]), rows: [row(1, a)], expected: [] },
    { name: "a new file", disk: scan([a]), rows: [], expected: ["read a"] },
    {
      name: "a renamed file whose old name was taken by a file that is too large",
      disk: scan([{ path: "z", ino: 1 }], { refused: [{ path: "a", reason: "large" }] }),
      rows: [row(1, a)],
      expected: ["read z #1 from a", "refused a: large"],
    },
    {
      name: "a renamed file whose old name was taken by an archive",
      disk: scan([{ path: "z", ino: 1 }], archiveSkip),
      rows: [row(1, a)],
      expected: ["read z #1 from a", "skipped a: archive"],
    },
    {
      name: "a held delete whose file is back and too large",
      disk: scan([], { refused: [{ path: "a", reason: "large" }] }),
      rows: [row(2, a, { state: "held" }), row(1, a, { state: "held" })],
      expected: ["gone a #1", "gone a #2", "refused a: large"],
    },
    {
      name: "an agreed delete whose name was taken by a file that is too large",
      disk: scan([], { refused: [{ path: "a", reason: "large" }] }),
      rows: [row(1, a, { state: "doomed" }), row(2, a, { state: "failed" })],
      expected: ["gone a #1", "refused a: large #2"],
    },
    {
      name: "two held deletes of one name, the younger of which was this very file",
      disk: scan([{ ...a, ctimeMs: 2 }]),
      rows: [row(1, { ...a, ino: 9 }, { state: "held" }), row(2, a, { state: "held" })],
      expected: ["gone a #1", "read a #2"],
    },
    { name: "a deleted file", disk: scan([]), rows: [row(1, a)], expected: ["gone a #1"] },
    {
      name: "a file edited in place",
      disk: scan([{ ...a, mtimeMs: 2 }]),
      rows: [row(1, a)],
      expected: ["read a #1"],
    },
    {
      name: "a write with the old modification time",
      disk: scan([{ ...a, ctimeMs: 2 }]),
      rows: [row(1, a)],
      expected: ["read a #1"],
    },
    {
      name: "an atomic save",
      disk: scan([{ ...a, ino: 9, mtimeMs: 2 }]),
      rows: [row(1, a)],
      expected: ["read a #1"],
    },
    { name: "other rules", disk: scan([a]), rows: [row(1, a, { rulesKey: 8 })], expected: ["read a #1"] },
    {
      name: "a file whose update got no answer",
      disk: scan([a]),
      rows: [row(1, a, { state: "unsure" })],
      expected: ["read a #1"],
    },
    { name: "a quarantined file", disk: scan([a]), rows: [row(1, a, { state: "failed" })], expected: [] },
    {
      name: "a quarantined file that changed",
      disk: scan([{ ...a, mtimeMs: 2 }]),
      rows: [row(1, a, { state: "failed" })],
      expected: ["read a #1"],
    },
    {
      name: "a parked file",
      disk: scan([a]),
      rows: [row(1, a, { state: "parked" })],
      expected: ["read a #1"],
    },
    {
      name: "a rename",
      disk: scan([{ path: "z", ino: 1, ctimeMs: 2 }]),
      rows: [row(1, a)],
      expected: ["read z #1 from a"],
    },
    {
      name: "a swap",
      disk: scan([
        { path: "a", ino: 2 },
        { path: "b", ino: 1 },
      ]),
      rows: [row(1, a), row(2, b)],
      expected: ["read a #2 from b", "read b #1 from a"],
    },
    {
      name: "a ring of three",
      disk: scan([
        { path: "a", ino: 3 },
        { path: "b", ino: 1 },
        { path: "c", ino: 2 },
      ]),
      rows: [row(1, a), row(2, b), row(3, { path: "c", ino: 3 })],
      expected: ["read a #3 from c", "read b #1 from a", "read c #2 from b"],
    },
    {
      name: "a rename over another file",
      disk: scan([{ path: "b", ino: 1 }]),
      rows: [row(1, a), row(2, b)],
      expected: ["gone b #2", "read b #1 from a"],
    },
    {
      name: "a rename, and a new file under the old name",
      disk: scan([
        { path: "a", ino: 3 },
        { path: "z", ino: 1 },
      ]),
      rows: [row(1, a)],
      expected: ["read a", "read z #1 from a"],
    },
    {
      name: "a rename that differs in case",
      disk: scan([{ path: "A", ino: 1 }]),
      rows: [row(1, a)],
      expected: ["read A #1 from a"],
    },
    {
      name: "an inode used again",
      disk: scan([{ path: "z", ino: 1, mtimeMs: 5 }]),
      rows: [row(1, a)],
      expected: ["gone a #1", "read z"],
    },
    {
      name: "two new hard links of a missing file: neither is the moved one",
      disk: scan([
        { path: "y", ino: 1 },
        { path: "z", ino: 1 },
      ]),
      rows: [row(1, a)],
      expected: ["gone a #1", "read y", "read z"],
    },
    {
      name: "a new hard link of a file that stays",
      disk: scan([a, { path: "z", ino: 1 }]),
      rows: [row(1, a)],
      expected: ["read z"],
    },
    {
      name: "a file below a folder that cannot be read",
      disk: scan([], { unreadable: [{ path: "d", code: "EACCES" }] }),
      rows: [row(1, { path: "d/e/f", ino: 1 })],
      expected: [],
    },
    {
      name: "an unreadable root",
      disk: scan([], { unreadable: [{ path: "", code: "EIO" }] }),
      rows: [row(1, a)],
      expected: [],
    },
    {
      name: "a neighbour whose name starts alike",
      disk: scan([], { unreadable: [{ path: "d", code: "EACCES" }] }),
      rows: [row(1, { path: "d2", ino: 1 })],
      expected: ["gone d2 #1"],
    },
    {
      name: "a row outside of the scope",
      disk: scan([], { scope: ["d"] }),
      rows: [row(1, a), row(2, { path: "d/x", ino: 2 })],
      expected: ["gone d/x #2"],
    },
    {
      name: "a file that became too large",
      disk: scan([], { refused: [{ path: "a", reason: "large" }] }),
      rows: [row(1, a)],
      expected: ["refused a: large #1"],
    },
    { name: "a new empty file", disk: scan([empty]), rows: [], expected: ["skipped a: the file is empty"] },
    {
      name: "an empty file noted before",
      disk: scan([empty]),
      rows: [bare(1, empty, "skipped")],
      expected: [],
    },
    {
      name: "an empty file noted before, touched",
      disk: scan([{ ...empty, mtimeMs: 2 }]),
      rows: [bare(1, empty, "skipped")],
      expected: ["skipped a #1: the file is empty"],
    },
    {
      name: "an empty file noted before, under other rules",
      disk: scan([empty]),
      rows: [{ ...bare(1, empty, "skipped"), rulesKey: 8 }],
      expected: ["skipped a #1: the file is empty"],
    },
    {
      name: "a skipped file that has content now",
      disk: scan([{ ...a, mtimeMs: 2 }]),
      rows: [bare(1, empty, "skipped")],
      expected: ["read a #1"],
    },
    {
      name: "a skipped file that is gone",
      disk: scan([]),
      rows: [bare(1, empty, "skipped")],
      expected: ["forgotten a"],
    },
    {
      name: "a skipped file renamed to a name that is taken",
      disk: scan([{ path: "z", ino: 1 }]),
      rows: [bare(1, a, "skipped")],
      expected: ["forgotten a", "read z"],
    },
    {
      name: "a failed file without a resource that is empty now",
      disk: scan([empty]),
      rows: [bare(1, a, "failed")],
      expected: ["skipped a #1: the file is empty"],
    },
    {
      name: "a known file that was emptied",
      disk: scan([{ ...empty, mtimeMs: 2 }]),
      rows: [row(1, a)],
      expected: ["read a #1"],
    },
    { name: "an emptied file that was sent", disk: scan([empty]), rows: [row(1, empty)], expected: [] },
    {
      name: "an emptied file under another name",
      disk: scan([{ ...empty, path: "z" }]),
      rows: [row(1, empty)],
      expected: ["read z #1 from a"],
    },
    {
      name: "an emptied file renamed over one that was always empty",
      disk: scan([{ ...empty, path: "b" }]),
      rows: [row(1, empty), bare(2, { ...b, sizeBytes: 0 }, "skipped")],
      expected: ["forgotten b", "read b #1 from a"],
    },
    { name: "a new archive", disk: archive, rows: [], expected: ["skipped a: archive"] },
    { name: "an archive noted before", disk: archive, rows: [bare(1, a, "skipped")], expected: [] },
    {
      name: "an archive noted as failed by an earlier version",
      disk: archive,
      rows: [bare(1, a, "failed")],
      expected: ["skipped a #1: archive"],
    },
    {
      name: "a file of a kind that is no longer taken keeps its resource, and a person is notified",
      disk: archive,
      rows: [row(1, a)],
      expected: ["refused a: archive #1"],
    },
    {
      name: "a held delete whose name an archive took",
      disk: archive,
      rows: [row(1, a, { state: "held" })],
      expected: ["gone a #1", "skipped a: archive"],
    },
    {
      name: "a skipped file that became too large",
      disk: scan([], { refused: [{ path: "a", reason: "large" }] }),
      rows: [bare(1, empty, "skipped")],
      expected: ["refused a: large #1"],
    },
    {
      name: "a known file renamed to an archive's name",
      disk: scan([], { skipped: [{ entry: entry({ path: "a.zip", ino: 1 }), reason: "archive" }] }),
      rows: [row(1, a)],
      expected: ["gone a #1", "skipped a.zip: archive"],
    },
    {
      name: "a failed file that is gone",
      disk: scan([]),
      rows: [row(1, a, { state: "failed", docId: null })],
      expected: ["forgotten a"],
    },
    { name: "a held file", disk: scan([]), rows: [row(1, a, { state: "held" })], expected: ["gone a #1"] },
    {
      name: "a held file that is back",
      disk: scan([a]),
      rows: [row(1, a, { state: "held" })],
      expected: ["returned a"],
    },
    {
      name: "a held file that is back with other times",
      disk: scan([{ ...a, ino: 8, mtimeMs: 2 }]),
      rows: [row(1, a, { state: "held" })],
      expected: ["read a #1"],
    },
    {
      name: "held files whose copies are back, each with the other's inode",
      disk: scan([
        { path: "d/a", ino: 2 },
        { path: "e/a", ino: 1 },
      ]),
      rows: [
        row(1, { path: "d/a", ino: 1 }, { state: "held" }),
        row(2, { path: "e/a", ino: 2 }, { state: "held" }),
      ],
      expected: ["read d/a #1", "read e/a #2"],
    },
    {
      name: "two held rows of one path, and a file there: the oldest takes it",
      disk: scan([{ ...a, ino: 8, mtimeMs: 2 }]),
      rows: [row(1, a, { state: "held" }), row(2, { path: "a", ino: 3 }, { state: "held" })],
      expected: ["gone a #2", "read a #1"],
    },
    {
      name: "two held rows of one path, and the file of one is back as it was",
      disk: scan([{ path: "a", ino: 3 }]),
      rows: [row(1, a, { state: "held" }), row(2, { path: "a", ino: 3 }, { state: "held" })],
      expected: ["gone a #1", "returned a"],
    },
    {
      name: "a delete that was agreed to, and another file of that name",
      disk: scan([{ ...a, ino: 8, mtimeMs: 2 }]),
      rows: [row(1, a, { state: "doomed" })],
      expected: ["gone a #1", "read a"],
    },
    {
      name: "a held file under another name",
      disk: scan([{ path: "z", ino: 1 }]),
      rows: [row(1, a, { state: "held" })],
      expected: ["read z #1 from a"],
    },
    {
      name: "a held row whose path another row's file took: it keeps its row, and the other stays held",
      disk: scan([{ path: "a", ino: 2 }]),
      rows: [row(1, a, { state: "held" }), row(2, { path: "b", ino: 2 })],
      expected: ["gone a #1", "read a #2 from b"],
    },
    {
      name: "a held row whose path another row's file took, in whose place is a new one",
      disk: scan([
        { path: "a", ino: 2 },
        { path: "b", ino: 3 },
      ]),
      rows: [row(1, a, { state: "held" }), row(2, { path: "b", ino: 2 })],
      expected: ["gone a #1", "read a #2 from b", "read b"],
    },
    {
      name: "a held row with a living one",
      disk: scan([{ path: "a", ino: 3 }]),
      rows: [row(1, a, { state: "held" }), row(2, { path: "a", ino: 3 })],
      expected: ["gone a #1"],
    },
  ])("$name", ({ disk, rows, expected }) => {
    expect(words(reconcile(disk, rows, { rulesKey: KEY, retryParked: true }))).toEqual(expected);
    expect(words(reconcile(disk, rows.toReversed(), { rulesKey: KEY, retryParked: true }))).toEqual(expected);
  });

  it("does not compare busy paths", () => {
    const difference = reconcile(scan([a, b]), [row(3, { path: "c", ino: 3 })], {
      rulesKey: KEY,
      busy: (path) => path !== "b",
    });
    expect(words(difference)).toEqual(["read b"]);
  });
});
