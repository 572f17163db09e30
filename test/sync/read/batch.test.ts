import { expect, it } from "vitest";
import { packBatch, unpackDocument } from "../../../src/sync/read/batch.ts";
import type { ReadOutcome, SourceDocument } from "../../../src/sync/read/outcome.ts";
import { EXTRACTOR_VERSION } from "../../../src/sync/plan/versions.ts";
import { openRules } from "../../../src/sync/rules/rules.ts";
import { sourceAt } from "../scan/tree.ts";

const rules = openRules(sourceAt("/nowhere"));
const { settings, collection: tier, ownerId } = rules.source;
const read = (path: string, content: string | Uint8Array): ReadOutcome => {
  const entry = { path, sizeBytes: path.length, mtimeMs: 1.5, ctimeMs: 2.5, ino: 3 };
  const names = { title: `title of ${path}`, description: `description of ${path}` };
  const recipe = {
    ...names,
    settings,
    tier,
    ownerId,
    kind: "content",
    extractorVersion: EXTRACTOR_VERSION,
  } as const;
  const prints = { hash: `hash of ${path}`, digest: `digest of ${path}` };
  return {
    kind: "document",
    document: {
      ...prints,
      sizeBytes: path.length,
      entry,
      recipe,
      kind: "content",
      content,
    } as SourceDocument,
  };
};

it("returns the documents of a batch unchanged, whatever else is in it", () => {
  const texts = [
    read("a", 'text "a" ä'),
    undefined,
    { kind: "gone" } as const,
    read("bb", Buffer.from('"b"')),
    read("c", ""),
  ];
  const answer = packBatch(texts);
  const unpacked = ["a", "none", "gone", "bb", "c"].map((path, index) =>
    unpackDocument(answer, index, { path }, rules),
  );
  expect([unpacked[1], unpacked[2]]).toEqual([undefined, undefined]);
  for (const [index, json] of [
    [0, '"text \\"a\\" ä"'],
    [3, '"b"'],
    [4, '""'],
  ] as const) {
    const before = texts[index];
    const after = unpacked[index];
    const { content, ...facts } = after as SourceDocument & { content: Uint8Array };
    expect(Buffer.from(content).toString()).toBe(json);
    expect(before).toMatchObject({ document: facts });
  }
});

it("returns no document for an index beyond the batch", () => {
  expect(unpackDocument(packBatch([read("a", "text")]), 1, { path: "b" }, rules)).toBeUndefined();
});
