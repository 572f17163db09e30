import { describe, expect, it } from "vitest";
import { decide, type ReadFacts, sameShape, uploadedHash } from "../../../src/sync/plan/decide.ts";
import type { LedgerFile, Shape } from "../../../src/sync/plan/model.ts";

const SETTINGS = { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 } as const;
const SHAPE: Shape = { kind: "content", tier: "fastest", ownerId: "o", settings: SETTINGS };
const read = (more: Partial<ReadFacts> = {}): ReadFacts => ({
  hash: "h",
  title: "t",
  label: "l",
  extractorVersion: 1,
  shape: SHAPE,
  ...more,
});
const row = (more: Partial<LedgerFile> = {}): LedgerFile => ({
  ...read(),
  id: 1,
  path: "a",
  docId: "doc",
  state: "agreed",
  sizeBytes: 1,
  mtimeMs: 1,
  ctimeMs: 1,
  ino: 1,
  rulesKey: 1,
  digest: "d",
  sent: "",
  fileUrl: null,
  metadataHash: null,
  ...more,
});
const FILE: Shape = { ...SHAPE, kind: "file" };

describe("the action for a file that was read", () => {
  it.each<{ name: string; read?: ReadFacts; row: LedgerFile | undefined; moved?: boolean; action: string }>([
    { name: "a file without a row is created", row: undefined, action: "create" },
    { name: "a row without a resource is created", row: row({ docId: null }), action: "create" },
    {
      name: "a moved file without a resource is created",
      row: row({ docId: null }),
      moved: true,
      action: "create",
    },
    { name: "an unchanged file needs nothing", row: row(), action: "touch" },
    { name: "another path is a move", row: row(), moved: true, action: "move" },
    {
      name: "a move with another title is a move",
      read: read({ title: "u", label: "m" }),
      row: row(),
      moved: true,
      action: "move",
    },
    {
      name: "other metadata is a retitle",
      read: read({ metadataHash: "b" }),
      row: row({ metadataHash: "a" }),
      action: "retitle",
    },
    {
      name: "metadata that the service never had is a retitle",
      read: read({ metadataHash: "b" }),
      row: row(),
      action: "retitle",
    },
    {
      name: "the same metadata needs nothing",
      read: read({ metadataHash: "a" }),
      row: row({ metadataHash: "a" }),
      action: "touch",
    },
    {
      name: "a service that takes no metadata any more gets none",
      row: row({ metadataHash: "a" }),
      action: "touch",
    },
    { name: "other bytes are an update", read: read({ hash: "i" }), row: row(), action: "update" },
    {
      name: "other bytes at another path are an update",
      read: read({ hash: "i" }),
      row: row(),
      moved: true,
      action: "update",
    },
    { name: "an update that got no answer is sent again", row: row({ state: "unsure" }), action: "update" },
    {
      name: "a text extracted in another way is an update",
      read: read({ extractorVersion: 2 }),
      row: row(),
      action: "update",
    },
    {
      name: "an upload is not sent again when its text is extracted in another way",
      read: read({ shape: FILE, extractorVersion: 2 }),
      row: row({ shape: FILE }),
      action: "touch",
    },
    { name: "another title is a retitle", read: read({ title: "u" }), row: row(), action: "retitle" },
    { name: "another description is a retitle", read: read({ label: "m" }), row: row(), action: "retitle" },
    {
      name: "another kind is a replacement",
      read: read({ shape: FILE }),
      row: row(),
      moved: true,
      action: "replace",
    },
  ])("$name", ({ read: facts = read(), row: known, moved = false, action }) => {
    expect(decide(facts, known, moved)).toBe(action);
  });
});

it.each<[what: string, other: Shape]>([
  ["kind", FILE],
  ["tier", { ...SHAPE, tier: "moderate" }],
  ["owner", { ...SHAPE, ownerId: "p" }],
  [
    "strategy",
    { ...SHAPE, settings: { ...SETTINGS, strategy: "hierarchical" } as unknown as Shape["settings"] },
  ],
  ["chunk size", { ...SHAPE, settings: { ...SETTINGS, chunkSize: 999 } }],
  ["chunk overlap", { ...SHAPE, settings: { ...SETTINGS, chunkOverlap: 99 } }],
])("a resource with another %s cannot be updated into this one", (_what, other) => {
  expect([sameShape(SHAPE, other), sameShape(other, SHAPE), sameShape(other, other)]).toEqual([
    false,
    false,
    true,
  ]);
});

it.each([
  ["is, for an acknowledged upload, its hash", row({ shape: FILE }), "h"],
  ["is unknown while an update has no answer", row({ shape: FILE, state: "unsure" }), undefined],
  ["is nothing for a text", row(), undefined],
  ["is nothing without a row", undefined, undefined],
])("the uploaded hash of a row %s", (_what, known, hash) => {
  expect(uploadedHash(known)).toBe(hash);
});
