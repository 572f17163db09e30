import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Difference, FileState, KnownFile, Scan, ScanEntry } from "../../../src/sync/plan/model.ts";
import { moveSuspects, pairByHash } from "../../../src/sync/plan/moves.ts";
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
/** A scan that finds that `a` is a link that is not followed. Its inode number stands for the reason too. */
const unfollowed = scan([], { skipped: [{ entry: entry({ ...a, ino: 9 }), reason: "link", absent: true }] });
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
      expected: ["gone a #2", "refused a: large #1"],
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
    {
      name: "a known file that became a link that is not followed",
      disk: unfollowed,
      rows: [row(1, a)],
      expected: ["gone a #1"],
    },
    { name: "a new link that is not followed", disk: unfollowed, rows: [], expected: ["skipped a: link"] },
    {
      name: "a link noted before for the same reason",
      disk: unfollowed,
      rows: [bare(1, { ...a, ino: 9 }, "skipped")],
      expected: [],
    },
    {
      name: "a link noted before for another reason",
      disk: unfollowed,
      rows: [bare(1, a, "skipped")],
      expected: ["skipped a #1: link"],
    },
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

describe("moves by content hash", () => {
  const gone = (id: number, path: string, hash: string): { known: KnownFile; hash: string } => ({
    known: row(id, { path, ino: id }),
    hash,
  });
  const fresh = (path: string, hash: string): { entry: ScanEntry; hash: string } => ({
    entry: entry({ path, ino: 99 }),
    hash,
  });
  it.each([
    { name: "one to one", rows: [gone(1, "a", "h")], files: [fresh("z", "h")], expected: ["1 z"] },
    { name: "another hash", rows: [gone(1, "a", "h")], files: [fresh("z", "i")], expected: [] },
    { name: "an unknown hash", rows: [gone(1, "a", "")], files: [fresh("z", "")], expected: [] },
    {
      name: "two rows, one file: paired by the name",
      rows: [gone(1, "d/a", "h"), gone(2, "d/b", "h")],
      files: [fresh("e/b", "h")],
      expected: ["2 e/b"],
    },
    {
      name: "two rows, one file, no name in common",
      rows: [gone(1, "a", "h"), gone(2, "b", "h")],
      files: [fresh("z", "h")],
      expected: [],
    },
    {
      name: "a folder of equal files",
      rows: [gone(1, "d/a", "h"), gone(2, "d/b", "h")],
      files: [fresh("e/a", "h"), fresh("e/b", "h")],
      expected: ["1 e/a", "2 e/b"],
    },
    {
      name: "equal names in two folders",
      rows: [gone(1, "d/a", "h"), gone(2, "e/a", "h")],
      files: [fresh("f/a", "h")],
      expected: [],
    },
  ])("$name", ({ rows, files, expected }) => {
    expect(pairByHash(rows, files).map(({ known, entry: { path } }) => `${known.id} ${path}`)).toEqual(
      expected,
    );
  });

  it("suspects only new files of a missing one's size", () => {
    const candidates = [
      { entry: entry({ path: "z", ino: 5 }), known: undefined },
      { entry: { ...entry({ path: "y", ino: 6 }), sizeBytes: 6 }, known: undefined },
    ];
    expect(moveSuspects(candidates, [row(1, a)]).map(({ entry: { path } }) => path)).toEqual(["z"]);
  });
});

describe("laws of the plan", () => {
  const name = fc.constantFrom<string>("a", "b", "c", "d/a", "d/b", "d/e/a");
  const disks = fc.uniqueArray(
    fc.record({
      path: name,
      ino: fc.integer({ min: 1, max: 5 }),
      mtimeMs: fc.integer({ min: 1, max: 2 }),
      sizeBytes: fc.constantFrom(0, 5),
    }),
    { selector: ({ path }) => path },
  );
  const states = fc.constantFrom<FileState>("agreed", "unsure", "failed", "skipped", "parked", "held");
  const rows = fc
    .uniqueArray(
      fc.record({
        path: name,
        ino: fc.integer({ min: 1, max: 5 }),
        mtimeMs: fc.integer({ min: 1, max: 2 }),
        sizeBytes: fc.constantFrom(0, 5),
        state: states,
        owned: fc.boolean(),
      }),
      { selector: ({ path }) => path },
    )
    .map((list) =>
      list.map(({ state, owned, ...disk }, index) =>
        row(index + 1, disk, {
          state,
          docId: (owned && state !== "skipped") || state === "held" ? `doc${index}` : null,
        }),
      ),
    );
  const unreadable = fc
    .subarray(["d", "d/e", "a"])
    .map((paths) => paths.map((path) => ({ path, code: "EACCES" })));
  const scopes = fc.option(fc.subarray(["a", "b", "d", "d/e"]), { nil: undefined });

  /** The ledger after a plan is applied. */
  const applied = (difference: Difference, before: readonly KnownFile[]): KnownFile[] => {
    const lost = new Set([...difference.gone, ...difference.forgotten].map(({ id }) => id));
    const after = new Map(before.filter(({ id }) => !lost.has(id)).map((known) => [known.id, known]));
    let id = 1000;
    for (const known of difference.returned) after.set(known.id, { ...known, state: "agreed" });
    for (const candidate of difference.candidates) {
      const known = candidate.known ?? row((id += 1), candidate.entry);
      after.set(known.id, {
        ...known,
        ...candidate.entry,
        state: "agreed",
        rulesKey: KEY,
        docId: known.docId ?? `new${known.id}`,
      });
    }
    for (const { entry: seen, known = row((id += 1), seen) } of difference.skipped) {
      after.set(known.id, { ...known, ...seen, state: "skipped", rulesKey: KEY, docId: null });
    }
    return [...after.values()];
  };
  /** A scan in which the files whose inode is 5 are of a kind that is not taken. */
  const scanned = (disk: readonly Disk[]): Scan =>
    scan(
      disk.filter(({ ino }) => ino !== 5),
      {
        skipped: disk.filter(({ ino }) => ino === 5).map((each) => ({ entry: entry(each), reason: "kind" })),
      },
    );

  it("planning again after everything is done plans nothing", () => {
    fc.assert(
      fc.property(disks, rows, (disk, known) => {
        const options = { rulesKey: KEY, retryParked: true };
        const difference = reconcile(scanned(disk), known, options);
        const after = applied(difference, known);
        // A refusal is reported each time.
        const again = words({ ...reconcile(scanned(disk), after, options), refused: [] });
        expect(again).toEqual([]);
        expect(after.map(({ path }) => path).toSorted()).toEqual(disk.map(({ path }) => path).toSorted());
      }),
    );
  });

  it("the order of scan and rows does not matter", () => {
    fc.assert(
      fc.property(disks, rows, (disk, known) => {
        const one = reconcile(scanned(disk), known, { rulesKey: KEY });
        const other = reconcile(scanned(disk.toReversed()), known.toReversed(), { rulesKey: KEY });
        expect(words(other)).toEqual(words(one));
      }),
    );
  });

  it("nothing out of scope or unreadable is ever gone, and no row or path comes twice", () => {
    fc.assert(
      fc.property(disks, rows, unreadable, scopes, (disk, known, blind, scope) => {
        const below = (path: string, folder: string): boolean =>
          path === folder || path.startsWith(`${folder}/`);
        const visible = disk.filter(({ path }) => scope?.some((each) => below(path, each)) ?? true);
        const difference = reconcile(scan(visible, { unreadable: blind, scope }), known, { rulesKey: KEY });
        const onDisk = new Set(visible.map(({ path }) => path));
        for (const { path } of [...difference.gone, ...difference.forgotten]) {
          const isBlind = blind.some((each) => below(path, each.path));
          const isOutside = scope !== undefined && !scope.some((each) => below(path, each));
          // A displaced row's path is on disk, as another file.
          expect((isBlind || isOutside) && !onDisk.has(path)).toBe(false);
        }
        const hidden = known.filter(
          ({ path, docId, state }) =>
            docId !== null &&
            state !== "held" &&
            state !== "doomed" &&
            blind.some((each) => below(path, each.path)),
        );
        expect(difference.hidden).toBe(hidden.length);
        const ids = [
          ...difference.gone,
          ...difference.forgotten,
          ...difference.candidates.flatMap((candidate) => candidate.known ?? []),
        ].map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
        const paths = difference.candidates.map(({ entry: { path } }) => path);
        expect(new Set(paths).size).toBe(paths.length);
      }),
    );
  });

  it("never skips a file that has a resource, and skips none twice", () => {
    fc.assert(
      fc.property(disks, rows, (disk, known) => {
        const { skipped, candidates, refused } = reconcile(scanned(disk), known, { rulesKey: KEY });
        expect(skipped.filter((skip) => skip.known !== undefined && skip.known.docId !== null)).toEqual([]);
        const paths = [...skipped, ...candidates].map(({ entry: { path } }) => path);
        expect(new Set([...paths, ...refused.map(({ path }) => path)]).size).toBe(
          paths.length + refused.length,
        );
      }),
    );
  });

  it("a rename of files with inodes of their own moves every one of them", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(["a", "b", "c", "d", "e", "f"], { minLength: 1 }), (order) => {
        const before = order.toSorted().map((path, index) => ({ path, ino: index + 1 }));
        const after = before.map(({ ino }, index) => ({ path: `new/${order[index] ?? ""}`, ino }));
        const known = before.map((disk) => row(disk.ino, disk));
        const difference = reconcile(scan(after), known, { rulesKey: KEY });
        expect(difference.moves).toHaveLength(before.length);
        expect(difference.gone).toEqual([]);
      }),
    );
  });
});
