import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  composeMetadata,
  hashListedMetadata,
  hashMetadata,
  type MetadataFacts,
  type MetadataParts,
} from "../../src/formats/metadata.ts";
import { NO_FIELDS, readFields } from "../../src/formats/fields.ts";
import { nameText } from "../../src/formats/title.ts";
import { readMetadata } from "../../src/wire/metadata.ts";
import { anyCharacter } from "../any-character.ts";

const FACTS: MetadataFacts = {
  path: "work/2024/plan.MD",
  sizeBytes: 12,
  modifiedMs: Date.UTC(2024, 0, 2, 3, 4, 5, 678),
  createdMs: Date.UTC(2023, 5, 1),
  hasUrl: false,
  fields: NO_FIELDS,
};
const PARTS: MetadataParts = { set: NO_FIELDS, folderDescription: undefined };

function compose(facts: Partial<MetadataFacts>, parts: Partial<MetadataParts> = {}): Record<string, unknown> {
  return composeMetadata({ ...FACTS, ...facts }, { ...PARTS, ...parts });
}

function fieldsOf(front: string): MetadataFacts["fields"] {
  return nameText(`---\n${front}\n---\n# H`, "markdown").fields ?? NO_FIELDS;
}

describe("composeMetadata", () => {
  it("says where a file is, what it is, how large and from when", () => {
    expect(compose({})).toEqual({
      path: "work/2024/plan.MD",
      folder: ["work", "work/2024"],
      name: "plan.MD",
      kind: "md",
      modified: "2024-01-02T03:04:05.678Z",
      created: "2023-06-01T00:00:00.000Z",
      size: 12,
    });
  });

  it("leaves out what is not known", () => {
    const found = compose({ path: "README", createdMs: undefined });
    expect(found).toMatchObject({ path: "README", kind: "text" });
    expect(found).not.toHaveProperty("folder");
    expect(found).not.toHaveProperty("created");
  });

  const fronts: readonly (readonly [string, string, object])[] = [
    ["tags as a list", "tags: [a, '#b', 3, a]", { tags: ["a", "b", "3"] }],
    ["tags with commas", "tags: one two, three", { tags: ["one two", "three"] }],
    ["tags with blanks", "tags: one two", { tags: ["one", "two"] }],
    ["scalars", "rating: 3\ndraft: true\nteam: Blue", { rating: 3, draft: true, team: "Blue" }],
    ["a negative zero, which JSON does not have", "rating: -0", { rating: 0 }],
    ["a date", "date: 2024-01-02", { date: "2024-01-02" }],
    ["a language", "lang: de", { language: "de", lang: "de" }],
    ["names of kbsync's and of the service", "status: done\npath: x", { fm: { status: "done", path: "x" } }],
  ];
  it.each(fronts)("takes from front matter: %s", (_, front, expected) => {
    expect(compose({ fields: fieldsOf(front) })).toMatchObject({ ...expected, name: "plan.MD" });
  });

  const left: readonly (readonly [string, string])[] = [
    ["title and description", "title: T\ndescription: D"],
    ["lists and objects", "aliases: [a]\nauthor: { name: A }"],
    ["nothing", "empty:\nblank: ' '"],
    ["names that no filter can have", "a.b: 1\nnot: 2\nor: 3\n__proto__: 4"],
    ["numbers that JSON cannot hold", "x: .nan\ny: .inf"],
    ["texts", `long: ${"x".repeat(2000)}`],
    ["a list in place of fields", "- a\n- b"],
  ];
  it.each(left)("leaves out of front matter: %s", (_, front) => {
    expect(compose({ fields: fieldsOf(front) })).toEqual(compose({}));
  });

  it("lets rules override fields and join tags", () => {
    const set = readFields({ team: "Red", tags: ["c", "a"] });
    expect(compose({ fields: fieldsOf("team: Blue\ntags: [a]") }, { set })).toMatchObject({
      team: "Red",
      tags: ["a", "c"],
    });
  });

  it("leaves author and pages of a document with an address to the service", () => {
    const fields = readFields({ author: "A", pages: 3, from: "B <b@example.org>" });
    expect(compose({ fields })).toMatchObject({ author: "A", pages: 3 });
    const sent = compose({ fields, hasUrl: true });
    expect(sent).toHaveProperty("from");
    expect(sent).not.toHaveProperty("author");
    expect(sent).not.toHaveProperty("pages");
  });

  it("keeps the end of a long description of folders, which is the nearest", () => {
    const folderDescription = `${"far ".repeat(400)}near`;
    const sent = compose({}, { folderDescription })["folderDescription"];
    expect(sent).toMatch(/near$/);
    expect(sent).toHaveLength(1024);
  });

  const scalars = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 1500 }),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
  );
  const names = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 70 }),
    fc.constantFrom("path", "tags", "status", "and", "fm", "author", "__proto__", "folderDescription"),
  );
  const raw = fc
    .array(fc.tuple(names, fc.oneof(scalars, fc.array(scalars, { maxLength: 90 }))), { maxLength: 90 })
    .map((entries) => Object.fromEntries(entries) as Record<string, unknown>);
  const paths = fc
    .array(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 255 }), { minLength: 1, maxLength: 60 })
    .map((parts) => parts.join("/"));
  const anyFacts: fc.Arbitrary<MetadataFacts> = fc.record({
    path: paths,
    sizeBytes: fc.nat(),
    modifiedMs: fc.double({ noNaN: false }),
    createdMs: fc.option(fc.double(), { nil: undefined }),
    hasUrl: fc.boolean(),
    fields: raw.map(readFields),
  });
  const anyParts: fc.Arbitrary<MetadataParts> = fc.record({
    set: raw.map(readFields),
    folderDescription: fc.option(fc.string({ unit: anyCharacter, maxLength: 3000 }), { nil: undefined }),
  });
  const Accepted = z.unknown().transform(readMetadata);

  it("gives what every service with our bounds accepts unchanged, whatever a file says", () => {
    fc.assert(
      fc.property(anyFacts, anyParts, (facts, parts) => {
        const sent = composeMetadata(facts, parts);
        expect(Accepted.parse(JSON.parse(JSON.stringify(sent)))).toEqual(sent);
      }),
      { numRuns: 300 },
    );
  });

  it("metadata is recognised in the service's record, whatever the order of names", () => {
    fc.assert(
      fc.property(anyFacts, anyParts, (facts, parts) => {
        const sent = composeMetadata(facts, parts);
        const listed = {
          status: "chunked",
          ...Object.fromEntries(Object.entries(sent).toReversed()),
          warning: "w",
        };
        const stored = JSON.parse(JSON.stringify(listed)) as Record<string, unknown>;
        expect(hashListedMetadata(stored, facts.hasUrl)).toBe(hashMetadata(sent, facts.hasUrl));
      }),
      { numRuns: 300 },
    );
  });
});

describe("hashMetadata", () => {
  const hashed = (facts: Partial<MetadataFacts>, parts: Partial<MetadataParts> = {}): string =>
    hashMetadata(compose(facts, parts), facts.hasUrl ?? false);

  it("ignores size and times, which follow the file", () => {
    expect(hashed({ sizeBytes: 1, modifiedMs: 2, createdMs: undefined })).toBe(hashed({}));
  });

  const others: readonly (readonly [string, Partial<MetadataFacts>, Partial<MetadataParts>])[] = [
    ["path", { path: "work/2025/plan.MD" }, {}],
    ["tags", { fields: fieldsOf("tags: a") }, {}],
    ["a field", { fields: fieldsOf("rating: 4") }, {}],
    ["a rule", {}, { set: readFields({ team: "Blue" }) }],
    ["the description of a folder", {}, { folderDescription: "plans" }],
  ];
  it.each(others)("differs with %s", (_, facts, parts) => {
    expect(hashed(facts, parts)).not.toBe(hashed({}));
  });

  it("ignores what the service reads of a document with an address", () => {
    const sent = compose({ hasUrl: true });
    expect(hashListedMetadata({ ...sent, pages: 3, author: "A" }, true)).toBe(hashMetadata(sent, true));
  });

  it("knows nothing of a record without metadata", () => {
    expect(hashListedMetadata({ status: "chunked" }, false)).toBeUndefined();
    expect(hashListedMetadata(undefined, false)).toBeUndefined();
  });
});
