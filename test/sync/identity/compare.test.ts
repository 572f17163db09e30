import { array, assert, constantFrom, dictionary, integer, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  compare,
  type Comparison,
  type DiskFile,
  type Item,
  type LedgerRow,
  memoryOfUnapplied,
  NO_MEMORY,
  type Situation,
} from "../../../src/sync/identity/compare.ts";
import { bytesTag, fileTag, markedDescription, sourceTag, writerTag } from "../../../src/sync/plan/marker.ts";

const SOURCE = sourceTag("docs");
const WRITER = writerTag("instance", "machine", "/state", "/docs");
const OTHER = writerTag("instance", "another machine", "/state", "/docs");
const LAG_MS = 1000;

function versionOf(text: string): string {
  return bytesTag(text, 1);
}

function file(path: string, text: string): DiskFile {
  return { path, file: fileTag(path), bytes: versionOf(text) };
}

function item(
  docId: string,
  path: string,
  text: string,
  more: Partial<Item> & { source?: string; writer?: string } = {},
): Item {
  const { source = SOURCE, writer = WRITER, ...rest } = more;
  const marker = { source, file: fileTag(path), bytes: versionOf(text), writer };
  return { docId, description: markedDescription(path, marker), createdMs: 1, ...rest };
}

function row(docId: string, path: string, text: string, more: Partial<LedgerRow> = {}): LedgerRow {
  const acknowledged = versionOf(text);
  return {
    docId,
    file: fileTag(path),
    acknowledged,
    sent: [{ file: fileTag(path), bytes: acknowledged }],
    acknowledgedMs: 1,
    ...more,
  };
}

function situation(facts: Partial<Situation>): Situation {
  return {
    source: SOURCE,
    writer: WRITER,
    isApproved: false,
    leftAlone: new Set(),
    items: [],
    files: [],
    rows: [],
    isPartial: false,
    keeps: false,
    unanswered: new Set(),
    isDistrusted: false,
    isNew: false,
    tombstones: new Set(),
    memory: NO_MEMORY,
    nowMs: 0,
    lagMs: LAG_MS,
    ...facts,
  };
}

/** Compares lists that show the same, and returns the last result. */
function compareLists(facts: Partial<Situation>, lists: number): Comparison {
  let memory = NO_MEMORY;
  let result = compare(situation({ ...facts, memory }));
  for (let list = 1; list < lists; list += 1) {
    memory = result.memory;
    result = compare(situation({ ...facts, memory }));
  }
  return result;
}

const cut = (description: string | undefined, chars: number): string => (description ?? "").slice(0, chars);

describe("each row of the table", () => {
  const NEW = { isDistrusted: true, isNew: true };
  const damaged = { ...item("d1", "a.md", "A"), description: cut(item("d1", "a.md", "A").description, 20) };
  const cases: readonly (readonly [string, Partial<Situation>, Partial<Comparison>])[] = [
    // The item has no marker, and its id is not in the ledger.
    [
      "an item without a marker is foreign",
      { items: [{ docId: "d1", description: "Installing on Linux, a.md" }] },
      { verdicts: [] },
    ],
    // The id is in the ledger and the marker is missing or damaged.
    ...(
      [
        ["without a marker", { docId: "d1", description: "edited by a person" }],
        ["without a description", { docId: "d1" }],
        ["with a damaged marker", damaged],
        ["with a marker of another source", item("d1", "a.md", "A", { source: sourceTag("notes") })],
      ] as const
    ).map(
      ([what, found]) =>
        [
          `a known resource ${what} is ours`,
          { items: [found], files: [file("a.md", "A")], rows: [row("d1", "a.md", "A")] },
          { verdicts: [{ kind: "same", path: "a.md", docId: "d1" }] },
        ] as const,
    ),
    // A damaged marker, and the id is unknown.
    [
      "an unknown resource with a damaged marker holds the source",
      { items: [damaged], files: [file("a.md", "A")] },
      { holds: [{ kind: "damaged-marker", docIds: ["d1"] }], verdicts: [] },
    ],
    [
      "an unknown resource with a damaged marker is left alone once a person approved that",
      { items: [damaged], files: [file("a.md", "A")], isApproved: true },
      { holds: [], verdicts: [{ kind: "create", path: "a.md" }] },
    ],
    [
      "an unknown resource with a damaged marker that was left alone before holds nothing",
      { items: [damaged], files: [file("a.md", "A")], leftAlone: new Set(["d1"]) },
      { holds: [], verdicts: [{ kind: "create", path: "a.md" }] },
    ],
    // A marker of another source.
    [
      "a resource of another source is that source's business",
      { items: [item("d1", "a.md", "A", { source: sourceTag("notes") })], files: [file("a.md", "A")] },
      { holds: [], verdicts: [{ kind: "create", path: "a.md" }] },
    ],
    // The id is a tombstone, in two lists.
    [
      "a deleted resource in one list is neither a file's nor deleted again",
      { items: [item("d1", "a.md", "A")], files: [file("a.md", "A")], tombstones: new Set(["d1"]) },
      { verdicts: [{ kind: "create", path: "a.md" }] },
    ],
    [
      "a deleted resource in the list of a service whose list never lags is deleted again at once",
      { items: [item("d1", "a.md", "A")], tombstones: new Set(["d1"]), lagMs: 0 },
      { verdicts: [{ kind: "delete-again", docId: "d1" }] },
    ],
    // Another writer, and bytes that this ledger never sent.
    [
      "what another writer wrote and this ledger never sent holds the source",
      { items: [item("d1", "a.md", "A", { writer: OTHER })], files: [file("a.md", "A")] },
      { holds: [{ kind: "other-writer", writer: OTHER, docIds: ["d1"] }], verdicts: [] },
    ],
    [
      "what another writer wrote to a known resource holds the source",
      {
        items: [item("d1", "a.md", "B", { writer: OTHER })],
        files: [file("a.md", "A")],
        rows: [row("d1", "a.md", "A")],
      },
      { holds: [{ kind: "other-writer", writer: OTHER, docIds: ["d1"] }], verdicts: [] },
    ],
    [
      "what another writer wrote is taken over once a person approved it",
      { items: [item("d1", "a.md", "A", { writer: OTHER })], files: [file("a.md", "A")], isApproved: true },
      { holds: [], verdicts: [{ kind: "same", path: "a.md", docId: "d1" }] },
    ],
    [
      "a version that this ledger sent from another folder is ours",
      {
        items: [item("d1", "a.md", "A", { writer: OTHER })],
        files: [file("a.md", "B")],
        rows: [row("d1", "a.md", "A")],
      },
      { holds: [], verdicts: [{ kind: "update", path: "a.md", docId: "d1" }] },
    ],
    // A file's marker, same bytes.
    [
      "a file's marker with the file's bytes needs nothing",
      { items: [item("d1", "a.md", "A")], files: [file("a.md", "A")] },
      { verdicts: [{ kind: "same", path: "a.md", docId: "d1" }] },
    ],
    [
      "a document that was renamed since an old ledger is that of the new name, and a file of the old name has none",
      {
        items: [item("d1", "b.md", "A")],
        files: [file("a.md", "X"), file("b.md", "A")],
        rows: [row("d1", "a.md", "A")],
      },
      {
        verdicts: [
          { kind: "same", path: "b.md", docId: "d1" },
          { kind: "create", path: "a.md" },
        ],
      },
    ],
    [
      "a marker that an old ledger does not know is newer than it",
      {
        items: [item("d1", "b.md", "A"), item("d2", "a.md", "new")],
        files: [file("a.md", "new"), file("b.md", "A")],
        rows: [row("d1", "a.md", "A")],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "same", path: "b.md", docId: "d1" },
        ],
      },
    ],
    [
      "a document with queued work and a name that was sent before is that of the name that an old ledger knows",
      {
        isDistrusted: true,
        items: [item("d1", "a.md", "A", { isUnfinished: true }), item("d2", "a.md", "X")],
        files: [file("a.md", "X"), file("b.md", "A")],
        rows: [row("d1", "b.md", "A", { sent: row("d1", "a.md", "A").sent })],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "update", path: "b.md", docId: "d1" },
        ],
      },
    ],
    [
      "a document with queued work is that of its marker if no file has the name that an old ledger knows",
      {
        isDistrusted: true,
        items: [item("d1", "a.md", "A", { isUnfinished: true })],
        files: [file("a.md", "A")],
        rows: [row("d1", "b.md", "A", { sent: row("d1", "a.md", "A").sent })],
      },
      { verdicts: [{ kind: "same", path: "a.md", docId: "d1" }] },
    ],
    // A file's marker, other bytes.
    [
      "a file's marker with other bytes is an update",
      { items: [item("d1", "a.md", "A")], files: [file("a.md", "B")] },
      { verdicts: [{ kind: "update", path: "a.md", docId: "d1" }] },
    ],
    [
      "a file's marker with other bytes than those of a file that was not read is an update",
      { items: [item("d1", "a.md", "A")], files: [{ ...file("a.md", ""), bytes: undefined }] },
      { verdicts: [{ kind: "update", path: "a.md", docId: "d1" }] },
    ],
    [
      "a file that was not read and whose last request nobody answered is an update, in every list",
      {
        items: [item("d1", "a.md", "A")],
        files: [{ ...file("a.md", ""), bytes: undefined }],
        rows: [row("d1", "a.md", "A", { acknowledged: undefined })],
        lagMs: 0,
      },
      { verdicts: [{ kind: "update", path: "a.md", docId: "d1" }] },
    ],
    [
      "an older version than the acknowledged one may be a stale list",
      { items: [item("d1", "a.md", "A")], files: [file("a.md", "B")], rows: [row("d1", "a.md", "B")] },
      { verdicts: [{ kind: "wait", path: "a.md", docId: "d1" }] },
    ],
    [
      "a list that never lags and shows an older version than the acknowledged one shows a lost write",
      {
        items: [item("d1", "a.md", "A")],
        files: [file("a.md", "B")],
        rows: [row("d1", "a.md", "B")],
        lagMs: 0,
      },
      { verdicts: [{ kind: "send-again", path: "a.md", docId: "d1" }] },
    ],
    [
      "a list that shows a file's name from before its rename may be stale, whatever has that name now",
      {
        items: [item("d1", "a.md", "A")],
        files: [file("a.md", "new"), file("b.md", "A")],
        rows: [
          row("d1", "b.md", "A", { sent: [{ file: fileTag("a.md"), bytes: versionOf("A") }] }),
          row("d2", "a.md", "new"),
        ],
      },
      {
        verdicts: [
          { kind: "wait", path: "b.md", docId: "d1" },
          { kind: "ask", path: "a.md", docId: "d2" },
        ],
      },
    ],
    // Several items with one file's marker.
    [
      "of several resources of a file the ledger's stays, and the others are surplus",
      {
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "A")],
        files: [file("a.md", "A")],
        rows: [row("d2", "a.md", "A")],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "surplus", docId: "d1", ofDocId: "d2", isOurs: true },
        ],
      },
    ],
    [
      "a second resource that another installation wrote is taken over with the others once a person approved that",
      {
        items: [item("d2", "a.md", "A"), item("d3", "a.md", "A", { writer: OTHER })],
        files: [file("a.md", "A")],
        rows: [row("d2", "a.md", "A")],
        isApproved: true,
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "surplus", docId: "d3", ofDocId: "d2", isOurs: true },
        ],
      },
    ],
    [
      "of several resources of a file without a row the one with its bytes stays, then the oldest",
      {
        items: [
          item("d1", "a.md", "A"),
          item("d2", "a.md", "B", { createdMs: 9 }),
          item("d3", "a.md", "B", { createdMs: 2 }),
        ],
        files: [file("a.md", "B")],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d3" },
          { kind: "surplus", docId: "d2", ofDocId: "d3", isOurs: true },
          { kind: "surplus", docId: "d1", ofDocId: "d3", isOurs: true },
        ],
      },
    ],
    [
      "a row of an old ledger does not say which of several resources of a file stays",
      {
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "B")],
        files: [file("a.md", "B")],
        rows: [row("d1", "a.md", "A")],
        isDistrusted: true,
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "surplus", docId: "d1", ofDocId: "d2", isOurs: true },
        ],
      },
    ],
    [
      "a surplus resource goes to a file without one that has its bytes",
      {
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "B")],
        files: [file("a.md", "A"), file("b.md", "B")],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d1" },
          { kind: "move", path: "b.md", docId: "d2" },
        ],
      },
    ],
    // No file has this path, and a file without a resource has these bytes.
    [
      "a renamed file keeps its resource",
      { items: [item("d1", "old.md", "A")], files: [file("new.md", "A")] },
      { verdicts: [{ kind: "move", path: "new.md", docId: "d1" }] },
    ],
    [
      "of two renamed files with equal bytes the first path takes the first resource",
      {
        items: [item("d2", "y.md", "A"), item("d1", "x.md", "A")],
        files: [file("b.md", "A"), file("a.md", "A")],
      },
      {
        verdicts: [
          { kind: "move", path: "a.md", docId: "d1" },
          { kind: "move", path: "b.md", docId: "d2" },
        ],
      },
    ],
    [
      "of two resources with one file's marker the oldest goes with the renamed file, and the other is a second one of it",
      {
        items: [item("d1", "old.md", "A", { createdMs: 2 }), item("d2", "old.md", "A")],
        files: [file("new.md", "A")],
      },
      {
        verdicts: [
          { kind: "move", path: "new.md", docId: "d2" },
          { kind: "surplus", docId: "d1", ofDocId: "d2", isOurs: true },
        ],
      },
    ],
    [
      "without a ledger two files that swapped names swap texts",
      {
        items: [item("d1", "a.md", "A"), item("d2", "b.md", "B")],
        files: [file("a.md", "B"), file("b.md", "A")],
      },
      {
        verdicts: [
          { kind: "update", path: "a.md", docId: "d1" },
          { kind: "update", path: "b.md", docId: "d2" },
        ],
      },
    ],
    // No file has this path.
    [
      "a resource without a file goes",
      { items: [item("d1", "a.md", "A")] },
      { verdicts: [{ kind: "delete", docId: "d1", file: fileTag("a.md") }] },
    ],
    [
      "of several resources of a file that is gone one stays in a source that deletes nothing: the ledger's, else the oldest",
      {
        items: [
          item("d1", "a.md", "A"),
          item("d2", "a.md", "B", { createdMs: 2 }),
          item("d3", "b.md", "C", { createdMs: 3 }),
          item("d4", "b.md", "C", { createdMs: 4 }),
        ],
        rows: [row("d2", "a.md", "B", { gonePath: "a.md" })],
        keeps: true,
      },
      {
        verdicts: [
          { kind: "delete", docId: "d2", file: fileTag("a.md") },
          { kind: "delete", docId: "d3", file: fileTag("b.md") },
          { kind: "surplus", docId: "d1", ofDocId: "d2", isOurs: true },
          { kind: "surplus", docId: "d4", ofDocId: "d3", isOurs: true },
        ],
      },
    ],
    [
      "the row of a file that is there decides, not that of one that was gone and had its name",
      {
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "A")],
        files: [file("a.md", "A")],
        rows: [row("d2", "a.md", "A"), row("d1", "a.md", "A", { gonePath: "a.md" })],
        keeps: true,
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d2" },
          { kind: "surplus", docId: "d1", ofDocId: "d2", isOurs: true },
        ],
      },
    ],
    [
      "a resource without a file stays while a part of the folder cannot be read",
      { items: [item("d1", "a.md", "A")], isPartial: true },
      { verdicts: [{ kind: "hidden", docId: "d1", file: fileTag("a.md") }] },
    ],
    // A new ledger sent a file to learn the collection's id.
    [
      "a resource that was made to learn the collection's id is its file's",
      {
        ...NEW,
        items: [item("d2", "a.md", "A")],
        files: [file("a.md", "A")],
        rows: [row("d2", "a.md", "A")],
      },
      { verdicts: [{ kind: "same", path: "a.md", docId: "d2" }] },
    ],
    [
      "resources that creates without an answer made give way to that of an older version",
      {
        ...NEW,
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "B", { createdMs: 2 })],
        files: [file("a.md", "B")],
        unanswered: new Set([fileTag("a.md")]),
      },
      {
        verdicts: [
          { kind: "update", path: "a.md", docId: "d1" },
          { kind: "surplus", docId: "d2", ofDocId: "d1", isOurs: true },
        ],
      },
    ],
    [
      "a resource that was made to learn the collection's id gives way to that of an older version",
      {
        ...NEW,
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "A2", { createdMs: 2 })],
        files: [file("a.md", "A2")],
        rows: [row("d2", "a.md", "A2")],
      },
      {
        verdicts: [
          { kind: "update", path: "a.md", docId: "d1" },
          { kind: "surplus", docId: "d2", ofDocId: "d1", isOurs: true },
        ],
      },
    ],
    [
      "a resource that was made to learn the collection's id gives way to that of a former name",
      {
        ...NEW,
        items: [item("d1", "old.md", "A"), item("d2", "new.md", "A", { createdMs: 2 })],
        files: [file("new.md", "A")],
        rows: [row("d2", "new.md", "A")],
      },
      {
        verdicts: [
          { kind: "move", path: "new.md", docId: "d1" },
          { kind: "surplus", docId: "d2", ofDocId: "d1", isOurs: true },
        ],
      },
    ],
    [
      "a resource that was adopted before the collection's id was known gives way to none that was made since",
      {
        ...NEW,
        items: [item("d1", "a.md", "A"), item("d2", "a.md", "A", { createdMs: 2 })],
        files: [file("a.md", "A")],
        rows: [row("d1", "a.md", "A")],
      },
      {
        verdicts: [
          { kind: "same", path: "a.md", docId: "d1" },
          { kind: "surplus", docId: "d2", ofDocId: "d1", isOurs: true },
        ],
      },
    ],
    [
      "a resource whose file is gone since it was made to learn the collection's id goes",
      { ...NEW, items: [item("d2", "a.md", "A")], rows: [row("d2", "a.md", "A")] },
      { verdicts: [{ kind: "delete", docId: "d2", file: fileTag("a.md") }] },
    ],
    // A file, and no item.
    [
      "a file without a resource is created",
      { files: [file("a.md", "A")] },
      { verdicts: [{ kind: "create", path: "a.md" }] },
    ],
    [
      "an acknowledged resource that the list lacks decides nothing",
      { files: [file("a.md", "A")], rows: [row("d1", "a.md", "A")] },
      { verdicts: [{ kind: "ask", path: "a.md", docId: "d1" }] },
    ],
    [
      "an acknowledged resource that the list lacks decides nothing, though another one has its file's marker",
      { items: [item("d2", "a.md", "A")], files: [file("a.md", "A")], rows: [row("d1", "a.md", "A")] },
      { verdicts: [{ kind: "ask", path: "a.md", docId: "d1", instead: "d2" }] },
    ],
  ];
  test.each(cases)("%s", (_name, facts, expected) => {
    expect(compare(situation(facts))).toMatchObject(expected);
  });
});

describe("lists that may be stale", () => {
  const rows = (a: number, b: number): LedgerRow[] => [
    row("d1", "a.md", "A2", { acknowledgedMs: a }),
    row("d2", "b.md", "B", { acknowledgedMs: b }),
  ];
  const lost = {
    items: [item("d1", "a.md", "A"), item("d2", "b.md", "B")],
    files: [file("a.md", "A2"), file("b.md", "B")],
  };

  test("a write is lost if two lists show the old version, the second begun after a later change was visible", () => {
    const facts = { ...lost, rows: rows(5, 6) };
    const kinds = [1, 2].map((lists) => compareLists(facts, lists).verdicts[0]?.kind);
    expect(kinds).toEqual(["wait", "send-again"]);
  });

  test("a list that shows no later change proves nothing, however often it comes", () => {
    expect(compareLists({ ...lost, rows: rows(6, 5) }, 9).verdicts[0]?.kind).toBe("wait");
  });

  test("a list that shows no later change is believed after ten times the lag of the service", () => {
    const facts = { ...lost, rows: rows(6, 5) };
    const { memory } = compareLists(facts, 1);
    const kinds = [10 * LAG_MS - 1, 10 * LAG_MS].map(
      (nowMs) => compare(situation({ ...facts, memory, nowMs })).verdicts[0]?.kind,
    );
    expect(kinds).toEqual(["wait", "send-again"]);
  });

  test("a lost write that was found and not sent again is found by the next list, too", () => {
    const facts = { ...lost, rows: rows(5, 6) };
    const { memory } = compareLists(facts, 1);
    const found = compare(situation({ ...facts, memory }));
    const unapplied = memoryOfUnapplied(memory, found);
    const kinds = [found, compare(situation({ ...facts, memory: unapplied }))].map(
      ({ verdicts }) => verdicts[0]?.kind,
    );
    expect(kinds).toEqual(["send-again", "send-again"]);
  });

  test("a write that is lost again is reported", () => {
    const { memory } = compareLists({ ...lost, rows: rows(5, 6) }, 2);
    const later = { ...lost, rows: rows(7, 8) };
    const third = compare(situation({ ...later, memory }));
    const fourth = compare(situation({ ...later, memory: third.memory }));
    expect([third.verdicts[0]?.kind, fourth.verdicts[0]?.kind]).toEqual(["wait", "lost"]);
  });

  test("a write that was lost and then stored is forgotten", () => {
    const { memory } = compareLists({ ...lost, rows: rows(5, 6) }, 2);
    const stored = { ...lost, items: [item("d1", "a.md", "A2"), item("d2", "b.md", "B")], rows: rows(7, 8) };
    const third = compare(situation({ ...stored, memory }));
    expect([third.verdicts[0]?.kind, third.memory.resent.size]).toEqual(["same", 0]);
  });

  test("a deleted resource that two lists show is deleted again", () => {
    const facts = { items: [item("d1", "a.md", "A")], tombstones: new Set(["d1"]) };
    expect(compareLists(facts, 1).verdicts).toEqual([]);
    expect(compareLists(facts, 2).verdicts).toEqual([{ kind: "delete-again", docId: "d1" }]);
  });
});

describe("laws", () => {
  const path = constantFrom("a.md", "b.md", "c/d.md", "e.md");
  const text = constantFrom("A", "B", "C");
  const items = array(record({ path, text, createdMs: integer({ min: 0, max: 3 }) }), { maxLength: 8 }).map(
    (all) =>
      all.map(({ path: name, text: body, createdMs }, at) => item(`d${at}`, name, body, { createdMs })),
  );
  const files = dictionary(path, text).map((texts) =>
    Object.entries(texts).map(([name, body]) => file(name, body)),
  );

  test("order decides nothing", () => {
    assert(
      property(items, files, (all, disk) => {
        const forwards = compare(situation({ items: all, files: disk }));
        expect(compare(situation({ items: all.toReversed(), files: disk.toReversed() }))).toEqual(forwards);
      }),
    );
  });

  test("each file and each resource has one verdict, and a resource goes only if every file with its bytes has another", () => {
    assert(
      property(items, files, (all, disk) => {
        const { verdicts } = compare(situation({ items: all, files: disk }));
        const paths = verdicts.flatMap((each) => ("path" in each ? [each.path] : []));
        const docIds = verdicts.flatMap((each) => ("docId" in each ? [each.docId] : []));
        expect(paths.toSorted()).toEqual(disk.map((each) => each.path).toSorted());
        expect(docIds.toSorted()).toEqual(all.map(({ docId }) => docId).toSorted());
      }),
    );
  });

  test("once the verdicts are carried out, a new ledger finds every file the same", () => {
    assert(
      property(items, files, (all, disk) => {
        const { verdicts } = compare(situation({ items: all, files: disk }));
        const after = verdicts.flatMap((verdict, at): readonly Item[] => {
          if (!("path" in verdict)) return [];
          const bytes = disk.find((each) => each.path === verdict.path)?.bytes ?? "";
          const marker = { source: SOURCE, file: fileTag(verdict.path), bytes, writer: WRITER };
          const docId = "docId" in verdict ? verdict.docId : `new${at}`;
          return [{ docId, description: markedDescription(verdict.path, marker) }];
        });
        const again = compare(situation({ items: after, files: disk }));
        expect(again.verdicts.map(({ kind }) => kind)).toEqual(disk.map(() => "same"));
      }),
    );
  });
});
