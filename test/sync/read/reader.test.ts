import { lstatSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readDocument } from "../../../src/sync/read/read.ts";
import type { ReadOutcome } from "../../../src/sync/read/outcome.ts";
import { type DocumentReader, openThreadReader } from "../../../src/sync/read/reader.ts";
import type { ScanEntry } from "../../../src/sync/plan/model.ts";
import { jsonWithText } from "../../../src/formats/json-text.ts";
import { openRules, type Rules } from "../../../src/sync/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../scan/tree.ts";

/** Enough files for a thread. */
const FILES = 100;
const ODD = {
  "empty.md": "",
  "page.pdf": Buffer.from("%PDF-1.7\n"),
  "binary.txt": Buffer.from("7f454c4602010100000000000000000003003e00", "hex"),
  "link.url": "[InternetShortcut]\nURL=https://example.org/a\n",
  "large.txt": "a line of text\n".repeat(40_000),
  "signs.md":
    '---\ntitle: "Zeichen \u{1F600}"\ndescription: Eine Seite\n---\n"quotes"\\ and\ttabs \u2028 \ud7ff',
  "windows.txt": Buffer.from("Gr\xfc\xdfe aus K\xf6ln", "latin1"),
  "ruled/a.txt": "a text with a rule",
};

let root: string;
let rules: Rules;
let reader: DocumentReader;
let names: string[];
beforeEach(() => {
  root = makeTree(ODD);
  for (let index = 0; index < FILES; index += 1)
    addFiles(root, { [`f/${index}.md`]: `# Title ${index}\n\nText.\n` });
  names = [...Object.keys(ODD), ...Array.from({ length: FILES }, (_, index) => `f/${index}.md`)];
  const rule = { match: "ruled/**", description: "Ruled {name}" };
  rules = openRules(sourceAt(root, { rules: [rule] }));
  reader = openThreadReader();
});
afterEach(async () => {
  await reader.close();
  removeTree(root);
});

const entryOf = (path: string): ScanEntry => {
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  return { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
};
const readAll = async (entries: readonly ScanEntry[]): Promise<ReadOutcome[]> =>
  await Promise.all(entries.map(async (entry) => reader.read(join(root, entry.path), entry, rules)));

/** Whether the thread read it: then its text is JSON already. */
const isRemote = (outcome: ReadOutcome | undefined): boolean =>
  outcome?.kind === "document" &&
  outcome.document.kind === "content" &&
  typeof outcome.document.content !== "string";

/** Replaces every text by its form in a request's body. */
function comparable(outcome: ReadOutcome): unknown {
  if (outcome.kind !== "document" || outcome.document.kind !== "content") return outcome;
  const body = JSON.parse(String(jsonWithText({}, "content", outcome.document.content))) as {
    content: string;
  };
  return { ...outcome, document: { ...outcome.document, content: body.content } };
}

/** Reads until the thread runs. */
async function readThere(entries: readonly ScanEntry[]): Promise<ReadOutcome[]> {
  for (;;) {
    const outcomes = await readAll(entries);
    if (outcomes.some(isRemote)) return outcomes;
  }
}

describe("many files in one turn", () => {
  it("reads many files of one turn in a thread, with the same results as in this one", async () => {
    const entries = names.map(entryOf);
    const there = await readThere(entries);
    const here = await Promise.all(
      entries.map(async (entry) => readDocument(join(root, entry.path), entry, rules)),
    );
    expect(there.map(comparable)).toEqual(here.map(comparable));
    // Large files and files that are not text are always read here.
    expect(there.filter(isRemote).length).toBe(names.length - 4);
  });

  it("reports missing files of a batch as gone", async () => {
    const entries = names.map(entryOf);
    await readThere(entries);
    unlinkSync(join(root, "f/7.md"));
    const outcomes = await readAll(entries);
    expect(outcomes[names.indexOf("f/7.md")]).toEqual({ kind: "gone" });
    expect(outcomes.filter(({ kind }) => kind === "gone")).toHaveLength(1);
  });

  it("reads all files of a batch when the thread ends meanwhile", async () => {
    const entries = names.map(entryOf);
    await readThere(entries);
    const reading = readAll(entries);
    await reader.close();
    const outcomes = await reading;
    expect(outcomes.filter(({ kind }) => kind === "document")).toHaveLength(names.length - 1);
    expect((await readAll(entries)).some(isRemote)).toBe(false);
  });
});

it("reads few files in this thread and starts no other", async () => {
  const entries = names.slice(-10).map(entryOf);
  const outcomes = await readAll(entries);
  expect(outcomes.every(({ kind }) => kind === "document")).toBe(true);
  expect(outcomes.some(isRemote)).toBe(false);
});

describe("a text in a request's body", () => {
  it.each([
    ["as it is", 'a "text"\n'],
    ["as JSON", Buffer.from(JSON.stringify('a "text"\n'))],
  ])("puts a text after the other fields: %s", (_name, text) => {
    expect(JSON.parse(String(jsonWithText({ title: "t" }, "content", text)))).toEqual({
      title: "t",
      content: 'a "text"\n',
    });
    expect(JSON.parse(String(jsonWithText({}, "content", text)))).toEqual({ content: 'a "text"\n' });
  });
});
