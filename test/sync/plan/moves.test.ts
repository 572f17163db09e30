import { describe, expect, it } from "vitest";
import type { KnownFile, Candidate, ScanEntry } from "../../../src/sync/plan/model.ts";
import {
  followMoves,
  inodeSuspects,
  moveSuspects,
  pairByHash,
  sameIdentity,
} from "../../../src/sync/plan/moves.ts";

const entry = (path: string, more: Partial<ScanEntry> = {}): ScanEntry => ({
  path,
  sizeBytes: 5,
  mtimeMs: 1,
  ctimeMs: 1,
  ino: 1,
  ...more,
});
const row = (path: string, more: Partial<KnownFile> = {}): KnownFile => ({
  ...entry(path),
  id: 1,
  docId: "doc",
  state: "agreed",
  rulesKey: 1,
  ...more,
});
const candidate = (path: string, more: Partial<ScanEntry> = {}): Candidate => ({
  entry: entry(path, more),
  known: undefined,
});
const NO_RESOURCE = { docId: null, state: "failed" } as const;
const DOOMED = { state: "doomed" } as const;

it.each<[what: string, other: Partial<ScanEntry>, same: boolean]>([
  ["name", { path: "b" }, true],
  ["change time", { ctimeMs: 2 }, true],
  ["inode", { ino: 2 }, false],
  ["size", { sizeBytes: 6 }, false],
  ["time", { mtimeMs: 2 }, false],
])("a file with another %s is the same one: %3$s", (_what, other, same) => {
  expect(sameIdentity(entry("a"), entry("a", other))).toBe(same);
});

describe("move candidates by size", () => {
  it.each<[what: string, candidates: Candidate[], gone: KnownFile[], paths: string[]]>([
    [
      "a new file with the size of a missing one is a candidate",
      [candidate("b"), candidate("c", { sizeBytes: 6 })],
      [row("a")],
      ["b"],
    ],
    ["a file with a row is not a candidate", [{ ...candidate("b"), known: row("b") }], [row("a")], []],
    ["no file is a candidate when nothing is missing", [candidate("b")], [], []],
    [
      "no file is a candidate for a missing row without a resource",
      [candidate("b")],
      [row("a", NO_RESOURCE)],
      [],
    ],
    ["no file is a candidate for a row whose delete was agreed to", [candidate("b")], [row("a", DOOMED)], []],
  ])("move candidates by size: %s", (_what, candidates, gone, paths) => {
    expect(moveSuspects(candidates, gone).map((each) => each.entry.path)).toEqual(paths);
  });
});

describe("move candidates by inode", () => {
  const edited = { sizeBytes: 9, mtimeMs: 9 };
  it.each<[what: string, candidates: Candidate[], gone: KnownFile[], pairs: [from: string, to: string][]]>([
    [
      "a new file with the inode of a missing one is a candidate",
      [candidate("b", edited), candidate("c", { ino: 2 })],
      [row("a")],
      [["a", "b"]],
    ],
    [
      "a file with a row is not a candidate",
      [{ ...candidate("b", edited), known: row("b") }],
      [row("a")],
      [],
    ],
    [
      "two new files with the inode are not candidates",
      [candidate("b", edited), candidate("c", edited)],
      [row("a")],
      [],
    ],
    [
      "a new file with the inode of two missing ones is not a candidate",
      [candidate("b", edited)],
      [row("a"), row("c", { id: 2 })],
      [],
    ],
    ["no file is a candidate when nothing is missing", [candidate("b")], [], []],
    [
      "no file is a candidate for a missing row without a resource",
      [candidate("b", edited)],
      [row("a", NO_RESOURCE)],
      [],
    ],
  ])("move candidates by inode: %s", (_what, candidates, gone, pairs) => {
    expect(inodeSuspects(candidates, gone).map(({ known, entry: to }) => [known.path, to.path])).toEqual(
      pairs,
    );
  });
});

describe("moves by content", () => {
  type Pair = [from: string, to: string];
  const gone = (path: string, hash = "h", more: Partial<KnownFile> = {}) => ({
    known: row(path, more),
    hash,
  });
  const fresh = (path: string, hash = "h") => ({ entry: entry(path), hash });
  it.each<[what: string, rows: ReturnType<typeof gone>[], files: ReturnType<typeof fresh>[], pairs: Pair[]]>([
    [
      "one row and one file are a move, whatever their names",
      [gone("x/a")],
      [fresh("y/b")],
      [["x/a", "y/b"]],
    ],
    ["one pair moves where the names are the same", [gone("x/a")], [fresh("y/a")], [["x/a", "y/a"]]],
    ["other contents are no move", [gone("a")], [fresh("b", "i")], []],
    ["unknown content is no move", [gone("a", "")], [fresh("b", "")], []],
    ["a row without a resource does not move", [gone("a", "h", NO_RESOURCE)], [fresh("b")], []],
    ["a row whose delete was agreed to does not move", [gone("a", "h", DOOMED)], [fresh("b")], []],
    [
      "file names distinguish equal files, in whatever folder",
      [gone("x/a"), gone("x/b")],
      [fresh("y/b"), fresh("y/a")],
      [
        ["x/a", "y/a"],
        ["x/b", "y/b"],
      ],
    ],
    ["a name that two rows have does not move", [gone("x/a"), gone("y/a")], [fresh("z/a")], []],
    ["a name that two new files have does not move", [gone("x/a")], [fresh("y/a"), fresh("z/a")], []],
    ["several files with other names do not move", [gone("a")], [fresh("b"), fresh("c")], []],
    ["several rows with other names do not move", [gone("a"), gone("b")], [fresh("c")], []],
    ["the one row with the name moves", [gone("x/a"), gone("x/b")], [fresh("y/b")], [["x/b", "y/b"]]],
    ["the one name that exists again moves", [gone("x/a")], [fresh("y/a"), fresh("y/c")], [["x/a", "y/a"]]],
  ])("moves by content: %s", (_what, rows, files, pairs) => {
    expect(pairByHash(rows, files).map(({ known, entry: to }) => [known.path, to.path])).toEqual(pairs);
  });
});

describe("followed moves", () => {
  const moved = row("old", { id: 7 });
  const found = { known: moved, entry: entry("new") };
  const follow = (gone: readonly KnownFile[]) =>
    followMoves({ moves: [], gone }, [candidate("new"), candidate("other")], [found]);

  it("a moved row is not gone, and its file is a candidate for that row, with its former path", () => {
    const { moves, candidates, gone } = follow([moved, row("left", { id: 8 })]);
    expect(moves).toEqual([found]);
    expect(gone.map(({ id }) => id)).toEqual([8]);
    expect(candidates).toEqual([{ entry: entry("new"), known: moved, from: "old" }, candidate("other")]);
  });

  it.each([
    ["agreed", "doomed"],
    ["failed", "doomed"],
    ["held", "held"],
    ["doomed", "doomed"],
  ] as const)("a row that is %s, and whose path a moved file took, becomes %s", (state, after) => {
    const { gone } = follow([row("new", { id: 9, state })]);
    expect(gone.map((each) => each.state)).toEqual([after]);
  });

  it("a row whose path nobody took is unchanged", () => {
    const left = row("left", { id: 8 });
    expect(follow([left]).gone).toEqual([left]);
  });
});
