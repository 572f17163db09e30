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
  ["time of change", { ctimeMs: 2 }, true],
  ["inode", { ino: 2 }, false],
  ["size", { sizeBytes: 6 }, false],
  ["time", { mtimeMs: 2 }, false],
])("a file with another %s is the same one: %3$s", (_what, other, same) => {
  expect(sameIdentity(entry("a"), entry("a", other))).toBe(same);
});

describe("new files that may be missing ones under another name, by their size", () => {
  it.each<[what: string, candidates: Candidate[], gone: KnownFile[], paths: string[]]>([
    [
      "are those of the size of a missing one",
      [candidate("b"), candidate("c", { sizeBytes: 6 })],
      [row("a")],
      ["b"],
    ],
    ["are no files that have a row", [{ ...candidate("b"), known: row("b") }], [row("a")], []],
    ["are none when nothing is missing", [candidate("b")], [], []],
    ["are none when what is missing has no resource", [candidate("b")], [row("a", NO_RESOURCE)], []],
    ["are none when a person agreed to delete what is missing", [candidate("b")], [row("a", DOOMED)], []],
  ])("%s", (_what, candidates, gone, paths) => {
    expect(moveSuspects(candidates, gone).map((each) => each.entry.path)).toEqual(paths);
  });
});

describe("new files that may be missing ones, moved and edited, by their inode", () => {
  const edited = { sizeBytes: 9, mtimeMs: 9 };
  it.each<[what: string, candidates: Candidate[], gone: KnownFile[], pairs: [from: string, to: string][]]>([
    [
      "are those of the inode of a missing one",
      [candidate("b", edited), candidate("c", { ino: 2 })],
      [row("a")],
      [["a", "b"]],
    ],
    ["are no files that have a row", [{ ...candidate("b", edited), known: row("b") }], [row("a")], []],
    [
      "are no files behind a link, which have the inode of its target",
      [candidate("b", { ...edited, link: { real: "/x", mark: "m" } })],
      [row("a")],
      [],
    ],
    [
      "are none when two new files have the inode",
      [candidate("b", edited), candidate("c", edited)],
      [row("a")],
      [],
    ],
    ["are none when two missing ones have it", [candidate("b", edited)], [row("a"), row("c", { id: 2 })], []],
    ["are none when nothing is missing", [candidate("b")], [], []],
    ["are none when what is missing has no resource", [candidate("b", edited)], [row("a", NO_RESOURCE)], []],
  ])("%s", (_what, candidates, gone, pairs) => {
    expect(inodeSuspects(candidates, gone).map(({ known, entry: to }) => [known.path, to.path])).toEqual(
      pairs,
    );
  });
});

describe("missing rows and new files of the same content", () => {
  type Pair = [from: string, to: string];
  const gone = (path: string, hash = "h", more: Partial<KnownFile> = {}) => ({
    known: row(path, more),
    hash,
  });
  const fresh = (path: string, hash = "h") => ({ entry: entry(path), hash });
  it.each<[what: string, rows: ReturnType<typeof gone>[], files: ReturnType<typeof fresh>[], pairs: Pair[]]>([
    ["are a move, one to one, whatever their names", [gone("x/a")], [fresh("y/b")], [["x/a", "y/b"]]],
    ["are one move where their names are the same", [gone("x/a")], [fresh("y/a")], [["x/a", "y/a"]]],
    ["are none with other contents", [gone("a")], [fresh("b", "i")], []],
    ["are none when the content is not known", [gone("a", "")], [fresh("b", "")], []],
    ["are none without a resource", [gone("a", "h", NO_RESOURCE)], [fresh("b")], []],
    ["are none when a person agreed to the delete", [gone("a", "h", DOOMED)], [fresh("b")], []],
    [
      "are told apart by the names of the files, in whatever folder",
      [gone("x/a"), gone("x/b")],
      [fresh("y/b"), fresh("y/a")],
      [
        ["x/a", "y/a"],
        ["x/b", "y/b"],
      ],
    ],
    ["are none of a name that comes twice", [gone("x/a"), gone("y/a")], [fresh("z/a")], []],
    ["are none of a name that two new files have", [gone("x/a")], [fresh("y/a"), fresh("z/a")], []],
    ["are none of other names where there are several", [gone("a")], [fresh("b"), fresh("c")], []],
    [
      "are a move of the one name that is there again",
      [gone("x/a")],
      [fresh("y/a"), fresh("y/c")],
      [["x/a", "y/a"]],
    ],
  ])("%s", (_what, rows, files, pairs) => {
    expect(pairByHash(rows, files).map(({ known, entry: to }) => [known.path, to.path])).toEqual(pairs);
  });
});

describe("once moves are followed", () => {
  const moved = row("old", { id: 7 });
  const found = { known: moved, entry: entry("new") };
  const follow = (gone: readonly KnownFile[]) =>
    followMoves({ moves: [], gone }, [candidate("new"), candidate("other")], [found]);

  it("a moved row is not gone, and its file is looked at as the row's, from where it was", () => {
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
  ] as const)("a row that is %s, and whose path a moved file took, is %s", (state, after) => {
    const { gone } = follow([row("new", { id: 9, state })]);
    expect(gone.map((each) => each.state)).toEqual([after]);
  });

  it("a row whose path nobody took stays as it is", () => {
    const left = row("left", { id: 8 });
    expect(follow([left]).gone).toEqual([left]);
  });
});
