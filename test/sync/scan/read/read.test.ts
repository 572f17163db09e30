import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { buildBinary } from "plist";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestOf } from "../../../../src/formats/digest.ts";
import { reportsBirthTime } from "../../../../src/sync/scan/disk/root-identity.ts";
import { readDocument } from "../../../../src/sync/scan/read/read.ts";
import type { ReadOutcome, SourceDocument } from "../../../../src/sync/scan/read/outcome.ts";
import { EXTRACTOR_VERSION } from "../../../../src/sync/plan/versions.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "../tree.ts";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const PDF = Buffer.from("%PDF-1.7\n%\xE2\xE3\n", "latin1");

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

/** Reads a file as the scan would have found it. */
async function read(path: string, fields: SourceFields = {}, signal?: AbortSignal): Promise<ReadOutcome> {
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  const entry = { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
  const rules = openRules(sourceAt(root, { maxFileBytes: 100_000_000, ...fields }));
  return await readDocument(join(root, path), entry, rules, signal === undefined ? {} : { signal });
}

async function document(
  path: string,
  bytes: string | Buffer,
  fields: SourceFields = {},
): Promise<SourceDocument> {
  addFiles(root, { [path]: bytes });
  const outcome = await read(path, fields);
  if (outcome.kind !== "document") throw new Error(`expected a document, got ${JSON.stringify(outcome)}`);
  return outcome.document;
}

/** `refused: its reason`, or another outcome that has a reason. */
async function refusal(path: string, bytes: string | Buffer, fields: SourceFields = {}): Promise<string> {
  addFiles(root, { [path]: bytes });
  const outcome = await read(path, fields);
  return "reason" in outcome
    ? `${outcome.kind}: ${outcome.reason}`
    : `neither refused nor skipped: ${outcome.kind}`;
}

describe("what a file becomes", () => {
  it("creates content from text, verbatim, with the facts of the file that was read", async () => {
    const text = "---\ntitle: Front\n---\n# Head\r\nüber\n";
    const { ino, mtimeMs, ctimeMs, birthtimeMs, size } =
      (addFiles(root, { "a/b.md": text }), lstatSync(join(root, "a/b.md")));
    const outcome = await read("a/b.md");
    expect(outcome).toEqual({
      kind: "document",
      document: {
        kind: "content",
        content: text,
        digest: digestOf(text),
        hash: createHash("sha256").update(text).digest("hex"),
        sizeBytes: size,
        fields: { values: {}, tags: [] },
        ...(reportsBirthTime() && birthtimeMs > 0 && { createdMs: birthtimeMs }),
        entry: { path: "a/b.md", sizeBytes: size, mtimeMs, ctimeMs, ino },
        recipe: {
          title: "Front",
          description: "a/b.md",
          settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
          tier: "fastest",
          ownerId: "owner",
          kind: "content",
          extractorVersion: EXTRACTOR_VERSION,
        },
      },
    });
  });

  it("hashes the raw bytes and sends the decoded text", async () => {
    const bytes = Buffer.from("\uFEFFGrüße", "utf16le");
    const read16 = await document("a.txt", bytes);
    expect(read16).toMatchObject({ kind: "content", content: "Grüße" });
    expect(read16.hash).toBe(createHash("sha256").update(bytes).digest("hex"));
  });

  it.each([
    ["a.pdf", PDF, "application/pdf"],
    ["a.png", PNG, "image/png"],
    ["misnamed.png", Buffer.from([0xff, 0xd8, 0xff, 0xe0]), "image/jpeg"],
    ["no-extension", PDF, "application/pdf"],
  ])("creates a file from %s, with the type of its bytes", async (path, bytes, mediaType) => {
    expect(await document(path, bytes)).toMatchObject({
      kind: "file",
      mediaType,
      recipe: { title: path, kind: "file" },
    });
  });

  it("creates links from shortcuts", async () => {
    const url = "https://example.org/a?b=c";
    const xml = `<?xml version="1.0"?><plist version="1.0"><dict><key>URL</key><string>https://example.org/a?b=c</string></dict></plist>`;
    expect(await document("w.url", `[InternetShortcut]\r\nIconIndex=0\r\nURL=${url}\r\n`)).toMatchObject({
      kind: "link",
      url,
      recipe: { title: "w.url", kind: "link" },
    });
    expect(await document("x.webloc", xml)).toMatchObject({ kind: "link", url });
    expect(await document("b.webloc", Buffer.from(buildBinary({ URL: url })))).toMatchObject({
      kind: "link",
      url,
    });
    expect(
      await document("u.url", Buffer.from(`\uFEFF[InternetShortcut]\nURL=${url}`, "utf16le")),
    ).toMatchObject({ url });
  });

  it.each([
    ["a.md", "123456", "refused: 6 bytes, larger than maxFileBytes (5)"],
    ["a.md", "\u001B$)C\n\u000E0!3*\u000F ", "refused: text in the encoding ISO-2022-KR"],
    ["a.pdf", "<html>", "refused: its name says PDF or image, but its content is neither"],
    ["a.url", "hi", "no http"],
    ["a.url", "[InternetShortcut]\nURL=file:///etc/passwd", "no http"],
    ["a.url", "[Other]\nURL=http://x.org", "no http"],
    ["a.webloc", "hi", "no http"],
    ["a.xyz", "a\0b", "skipped: binary data"],
    ["a.zip", "PK", "skipped: .zip is an archive"],
    ["a.pdf", "", "skipped: the file is empty"],
    ["a.url", "", "skipped: the file is empty"],
  ])("creates nothing from %s with %j, and returns the reason", async (path, bytes, reason) => {
    const fields = reason.includes("larger") ? { maxFileBytes: 5 } : {};
    expect(await refusal(path, bytes, fields)).toContain(reason);
  });
});

it("creates an empty text from an empty file, which may have been emptied", async () => {
  expect(await document("a.md", "")).toMatchObject({ kind: "content", content: "", sizeBytes: 0 });
});

describe("title and description", () => {
  it("fills the templates of the rules", async () => {
    const rules = [{ match: "**", description: "{name}: {title} from {path}, {unknown}" }];
    const { recipe } = await document("a/b.md", "# $& Head", { rules });
    expect(recipe).toMatchObject({ title: "$& Head", description: "b.md: $& Head from a/b.md, {unknown}" });
  });

  it("puts a title on one line, and uses the path for an empty description", async () => {
    const rules = [{ match: "b.md", description: "" }];
    expect((await document("a.md", "---\ntitle: |\n  one\n  two\n---\n")).recipe.title).toBe("one two");
    expect((await document("b.md", "# H", { rules })).recipe).toMatchObject({
      title: "H",
      description: "b.md",
    });
  });

  it("bounds title and description without splitting a character", async () => {
    const long = `${"x".repeat(1999)}😀tail`;
    const { recipe } = await document(
      "a.md",
      `---\ntitle: ${long}\ndescription: ${"y".repeat(20_000)}\n---\n`,
    );
    expect(recipe.title).toBe("x".repeat(1999));
    expect(recipe.description).toHaveLength(10_000);
  });
});

describe("large files", () => {
  it("reads large text completely and large uploads by their hash only", async () => {
    const text = `# Big\n${"line of text, ü\n".repeat(200_000)}`;
    expect(await document("a.md", text)).toMatchObject({
      content: text,
      hash: createHash("sha256").update(text).digest("hex"),
      recipe: { title: "Big" },
    });
    const pdf = Buffer.concat([PDF, Buffer.alloc(3_500_000, 7)]);
    expect(await document("b.pdf", pdf)).toMatchObject({
      kind: "file",
      sizeBytes: pdf.length,
      hash: createHash("sha256").update(pdf).digest("hex"),
    });
  });

  it("skips large binary data, wherever its zero bytes are", async () => {
    expect(await refusal("a.dat", Buffer.alloc(3_000_000))).toContain("binary data");
    const late = Buffer.alloc(3_000_000, "text ");
    late[2_900_000] = 0;
    expect(await refusal("b.dat", late)).toContain("binary data");
  });

  it("stops reading a large file when the signal aborts", async () => {
    addFiles(root, { "a.md": "x".repeat(5_000_000) });
    await expect(read("a.md", {}, AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
  });

  it("reports a large file as torn that grows while it is read", async () => {
    addFiles(root, { "a.md": "x".repeat(20_000_000) });
    const reading = read("a.md");
    const fd = openSync(join(root, "a.md"), "a");
    // Until it is read completely, every turn of the loop appends something.
    const appending = setInterval(() => writeSync(fd, "y"), 0);
    expect(await reading).toEqual({ kind: "torn" });
    clearInterval(appending);
    closeSync(fd);
  });
});

describe("what can happen between scan and reading", () => {
  const entry = { path: "a.md", sizeBytes: 1, mtimeMs: 0, ctimeMs: 0, ino: 1 };
  const readStale = async (): Promise<ReadOutcome> =>
    await readDocument(join(root, "a.md"), entry, openRules(sourceAt(root)));

  it.each([
    ["nothing is there", () => undefined],
    ["a folder is there", () => mkdirSync(join(root, "a.md"))],
    ["a link is there", () => (addFiles(root, { "b.md": "b" }), symlinkSync("b.md", join(root, "a.md")))],
    ["a dangling link is there", () => symlinkSync("nowhere", join(root, "a.md"))],
    ["a pipe is there", () => spawnSync("mkfifo", [join(root, "a.md")])],
  ])("reports a file as gone: %s", async (_, change) => {
    change();
    expect(await readStale()).toEqual({ kind: "gone" });
  });

  it("returns the facts of the file that it read, not of the scan", async () => {
    writeFileSync(join(root, "a.md"), "longer now");
    const outcome = await readStale();
    const { size, ino } = lstatSync(join(root, "a.md"));
    expect(outcome).toMatchObject({ document: { sizeBytes: size, entry: { sizeBytes: size, ino } } });
    unlinkSync(join(root, "a.md"));
    expect(await readStale()).toEqual({ kind: "gone" });
  });

  it("reads a file that has grown large since the scan", async () => {
    writeFileSync(join(root, "a.md"), "x".repeat(300_000));
    expect(await readStale()).toMatchObject({ document: { sizeBytes: 300_000 } });
  });

  it("leaves no file open", async () => {
    addFiles(root, { "b.md": "b", "c.pdf": PDF, "d.md": "x".repeat(400_000), "e.md": "" });
    const open = (): number => readdirSync("/proc/self/fd").length;
    const before = open();
    for (const path of ["b.md", "c.pdf", "d.md", "e.md"]) await read(path);
    expect(open()).toBe(before);
  });
});

it("reads a megabyte of small files in each turn of the loop", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `${index}.md`);
  addFiles(root, Object.fromEntries(names.map((name) => [name, "x".repeat(200_000)])));
  let done = 0;
  const all = Promise.all(
    names.map(async (name) => {
      await read(name);
      done += 1;
    }),
  );
  await nextTurn();
  // Those of two turns, for this one may come after the next of the reader.
  expect(done).toBeGreaterThanOrEqual(5);
  expect(done).toBeLessThanOrEqual(12);
  await all;
  expect(done).toBe(names.length);
});
