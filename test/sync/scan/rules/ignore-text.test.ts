import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openRules, type Rules } from "../../../../src/sync/scan/rules/rules.ts";
import { makeTree, removeTree, sourceAt } from "../tree.ts";
import { randomRuns } from "../../../random-runs.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

function rulesOf(bytes: string | Buffer): Rules {
  writeFileSync(join(root, ".kbsyncignore"), bytes);
  return openRules(sourceAt(root));
}

const BOM = "\uFEFF";
const bigEndian = (text: string): Buffer => Buffer.from(text, "utf16le").swap16();
const ENCODINGS: readonly [name: string, encode: (text: string) => Buffer][] = [
  ["UTF-8", (text) => Buffer.from(text)],
  ["UTF-8 with a byte order mark", (text) => Buffer.from(BOM + text)],
  ["UTF-16 LE with a byte order mark", (text) => Buffer.from(BOM + text, "utf16le")],
  ["UTF-16 BE with a byte order mark", (text) => bigEndian(BOM + text)],
  ["UTF-16 LE", (text) => Buffer.from(text, "utf16le")],
  ["UTF-16 BE", (text) => bigEndian(text)],
];

describe("the encoding of an ignore file", () => {
  it("excludes the same files in every encoding, line end and normal form", () => {
    const name = fc.constantFrom("secret", "Päßword list", "é", "notes.md", "日本", "a b");
    const form = fc.constantFrom("NFC", "NFD");
    const setting = fc.record({
      // Text that is mostly not ASCII is not surely UTF-16 without a mark, so each file begins with a comment.
      names: fc.array(name, { minLength: 1, maxLength: 4 }),
      encoding: fc.constantFrom(...ENCODINGS),
      lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
      ending: fc.constantFrom("", " ", "\t", "/ ", "/"),
      inFile: form,
      onDisk: form,
    });
    fc.assert(
      fc.property(setting, ({ names, encoding: [, encode], lineEnd, ending, inFile, onDisk }) => {
        const lines = [
          "# what stays here and is never sent",
          ...names.map((each) => each.normalize(inFile) + ending),
        ];
        const rules = rulesOf(encode(lines.join(lineEnd) + lineEnd));
        for (const each of names)
          expect([each, rules.wants(`${each.normalize(onDisk)}/a.md`).wanted]).toEqual([each, false]);
        expect(rules.wants("other.md")).toEqual({ wanted: true });
      }),
      { numRuns: randomRuns(200) },
    );
  });

  it("takes no byte order mark for a part of the first line", () => {
    const rules = rulesOf(`${BOM}secret\n`);
    expect(rules.wants("secret").wanted).toBe(false);
    expect(rules.doubtfulPatterns()).toEqual([]);
  });

  it("lets nothing through that a line excludes, whatever encodings programs append lines in", () => {
    const line = fc.record({
      name: fc.constantFrom("secret", "secrets", "password list"),
      encode: fc.constantFrom<(text: string) => Buffer>(
        (text) => Buffer.from(text),
        (text) => Buffer.from(text, "utf16le"),
      ),
      lineEnd: fc.constantFrom("\n", "\r\n"),
    });
    fc.assert(
      fc.property(fc.boolean(), fc.array(line, { minLength: 1, maxLength: 5 }), (isMarked, lines) => {
        const [first] = lines;
        const parts = lines.map(({ name, encode, lineEnd }) => encode(name + lineEnd));
        const rules = rulesOf(
          Buffer.concat([...(isMarked ? [first?.encode(BOM) ?? Buffer.from("")] : []), ...parts]),
        );
        for (const { name } of lines)
          expect([name, rules.wants(`${name}/a.md`).wanted]).toEqual([name, false]);
      }),
      { numRuns: randomRuns(500) },
    );
  });

  it.each<[what: string, bytes: Buffer]>([
    ["Latin-1", Buffer.from("Päßword\n", "latin1")],
    ["UTF-16 without a mark and without ASCII", Buffer.from("日本日本日本日本\n", "utf16le")],
    ["UTF-16 cut off within a character", Buffer.from(`${BOM}secret\n`, "utf16le").subarray(0, -1)],
    [
      "UTF-16 to which a line in ASCII was appended",
      Buffer.concat([Buffer.from(`${BOM}a\n`, "utf16le"), Buffer.from("secrets\n")]),
    ],
    ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0])],
    ["bytes of a program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 0])],
  ])("wants nothing where an ignore file cannot be decoded: %s", (_, bytes) => {
    const rules = rulesOf(bytes);
    expect(rules.wants("any.md")).toEqual({
      wanted: false,
      isUnknown: true,
      reason: ".kbsyncignore is not text in UTF-8 or UTF-16",
    });
    expect(rules.inFolder("").unreadable).toMatchObject({ path: "", code: "EILSEQ" });
  });

  it("reads a file whose comments alone are not UTF-8", () => {
    const rules = rulesOf(Buffer.from("# für mich\nsecret\n", "latin1"));
    expect(rules.wants("secret").wanted).toBe(false);
    expect(rules.wants("other").wanted).toBe(true);
  });
});

it.each([
  [".kbsyncignore", `x${" ".repeat(100_000)}y`],
  [".kbsyncignore", `${"[".repeat(100_000)}]`],
  [".gitignore", "x".repeat(100_000)],
])("wants nothing where a line of %s is longer than any path", (file, line) => {
  writeFileSync(join(root, file), line);
  expect(openRules(sourceAt(root, { gitignore: true })).wants("a.md")).toEqual({
    wanted: false,
    isUnknown: true,
    reason: `${file} has a line of more than 4096 characters`,
  });
});

describe("what is not a plain file under the name of an ignore file", () => {
  const path = (): string => join(root, ".kbsyncignore");

  it("wants nothing beside a folder of that name", () => {
    mkdirSync(path());
    expect(openRules(sourceAt(root)).wants("a.md")).toEqual({
      wanted: false,
      isUnknown: true,
      reason: ".kbsyncignore is a folder, not a file",
    });
  });

  it("wants nothing beside a link of that name that leads nowhere", () => {
    symlinkSync("missing", path());
    expect(openRules(sourceAt(root)).wants("a.md")).toEqual({
      wanted: false,
      isUnknown: true,
      reason: ".kbsyncignore is a symbolic link that leads nowhere",
    });
  });

  it("reads the file to which a link of that name leads", () => {
    writeFileSync(join(root, "patterns"), "secret\n");
    symlinkSync("patterns", path());
    const rules = openRules(sourceAt(root));
    expect(rules.wants("secret").wanted).toBe(false);
    expect(rules.wants("other").wanted).toBe(true);
  });
});

describe("a pattern as people write it", () => {
  it.each<[pattern: string, excluded: readonly string[], wanted: readonly string[]]>([
    ["./secret/", ["secret/a.md"], ["b/secret/a.md"]],
    ["secret//deep", ["secret/deep"], ["deep"]],
    ["secret\t", ["secret"], []],
    ["secret \t ", ["secret/a.md"], []],
    ["b/./secret/.", ["b/secret/a.md"], ["secret/a.md"]],
    ["first.md\rsecret.md", ["secret.md"], []],
    ["first.md\u2028secret.md", ["secret.md"], []],
  ])("is read as it is surely meant: %j", (pattern, excluded, wanted) => {
    const rules = rulesOf(`${pattern}\n`);
    for (const each of excluded) expect([each, rules.wants(each).wanted]).toEqual([each, false]);
    for (const each of [...wanted, "other.md"])
      expect([each, rules.wants(each).wanted]).toEqual([each, true]);
    expect(rules.doubtfulPatterns()).toEqual([]);
  });

  it("names the source's folder and is bound to it", () => {
    const rules = rulesOf(`${root}/secret/\n`);
    expect(rules.wants("secret/a.md").wanted).toBe(false);
    expect(rules.wants("b/secret/a.md").wanted).toBe(true);
  });

  it("names the folder of its own file below the source's", () => {
    mkdirSync(join(root, "sub"));
    writeFileSync(join(root, "sub/.kbsyncignore"), `${root}/sub/secret\n`);
    expect(openRules(sourceAt(root)).wants("sub/secret").wanted).toBe(false);
  });

  it.each<[pattern: string, excluded: readonly string[]]>([
    ["secret\\*", ["secret/a.md", "secret*"]],
    ["deep\\secret\\", ["deep/secret/a.md"]],
    ["deep\\secret", ["deep/secret"]],
    ['"password list.md"', ["password list.md"]],
    ["'password list/'", ["password list/a.md"]],
    ["password list # mine", ["password list"]],
    ["secret/ #mine", ["secret/a.md"]],
    ["  secret", ["secret"]],
    ["*.{key,pem}", ["a.key", "deep/b.pem"]],
    ["{a,b}/{c,d}.md", ["a/c.md", "b/d.md"]],
    [`{${Array.from({ length: 200 }, (_, n) => n).join(",")}}.txt`, ["7.txt"]],
    ["{a,b}/{1..3}.md", ["a/2.md"]],
    ["*.@(key|pem)", ["a.key", "a.pem"]],
    ["secret.md #passwords", ["secret.md"]],
    ["*.key *.pem", ["a.key", "deep/b.pem"]],
    ["a.txt, b.txt; c/", ["a.txt", "b.txt", "c/d.md"]],
    ["'password list'/*", ["password list/a.md"]],
    ["“secret”", ["secret"]],
    ["`secret`", ["secret"]],
    ["- secret/", ["secret/a.md"]],
    ["alt\\!secret", ["alt/!secret"]],
    ["deep\\\\secret", ["deep/secret"]],
    ["\u200Bsecret", ["secret"]],
    ["[Draft] a.md", ["[Draft] a.md"]],
    ['"#secret"', ["#secret"]],
    ["secret\n !secret", ["secret"]],
    ["secret\n'!secret'", ["secret"]],
  ])("excludes what it may mean, and is reported: %j", (pattern, excluded) => {
    const rules = rulesOf(`# first line\n${pattern}\n`);
    for (const each of excluded) expect([each, rules.wants(each).wanted]).toEqual([each, false]);
    expect(rules.wants("other.md").wanted).toBe(true);
    const line = 1 + pattern.split("\n").length;
    expect(rules.doubtfulPatterns()).toMatchObject([{ file: ".kbsyncignore", line }]);
  });

  it.each([".", "./", "/"])("leaves out the whole folder, and is reported: %j", (pattern) => {
    const rules = rulesOf(`${pattern}\n`);
    expect(rules.wants("a.md").wanted).toBe(false);
    expect(rules.doubtfulPatterns()).toMatchObject([{ line: 1 }]);
  });

  it.each([
    "../secret",
    "~/secret",
    "C:/secret",
    "$HOME/secret",
    "secret[",
    "^secret$",
    '"secret',
    "!(a|b).txt",
    "!./out\\keep.md",
  ])("is reported if it can match nothing: %j", (pattern) => {
    const rules = rulesOf(`${pattern}\n`);
    expect(rules.wants("other.md").wanted).toBe(true);
    expect(rules.doubtfulPatterns()).toMatchObject([{ file: ".kbsyncignore", line: 1 }]);
  });

  it.each([
    "notes #1.md",
    "a\\[1\\].md",
    "\\#a",
    "\\!a",
    "a\\ ",
    "it's",
    "*.tmp",
    "a[bc].md",
    "~$*.docx",
    "v1.2 notes",
  ])("is not doubtful: %j", (pattern) => {
    const rules = rulesOf(`${pattern}\n`);
    expect(rules.wants("notes").wanted).toBe(true);
    expect(rules.doubtfulPatterns()).toEqual([]);
  });
});
