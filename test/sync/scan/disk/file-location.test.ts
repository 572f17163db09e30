import { closeSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { liesInside } from "../../../../src/sync/scan/disk/file-location.ts";
import { readDocument } from "../../../../src/sync/scan/read/read.ts";
import type { ReadOutcome } from "../../../../src/sync/scan/read/outcome.ts";
import type { ScanEntry } from "../../../../src/sync/plan/model.ts";
import { uploadBody, TornFile } from "../../../../src/sync/send/remote/multipart.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../tree.ts";

let root = "";
let outside = "";
beforeEach(() => {
  root = makeTree({ "d/a.md": "inside", "d/a.pdf": "%PDF-1.7 inside" });
  outside = makeTree({ "a.md": "secret", "a.pdf": "%PDF-1.7 secret", "big.md": "x".repeat(300_000) });
});
afterEach(() => {
  removeTree(root);
  removeTree(outside);
});

const entryOf = (path: string): ScanEntry => {
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  return { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
};
const read = async (entry: ScanEntry, at = root): Promise<ReadOutcome> =>
  await readDocument(join(at, entry.path), entry, openRules(sourceAt(at)));
const swapForLink = (to: string): void => {
  renameSync(join(root, "d"), join(root, "away"));
  symlinkSync(to, join(root, "d"));
};

describe("a folder that becomes a link after it was scanned", () => {
  it("reads no file outside through a folder replaced by a link, however large", async () => {
    const small = entryOf("d/a.md");
    swapForLink(outside);
    expect(await read(small)).toEqual({ kind: "gone" });
    expect(await read({ ...small, path: "d/big.md", sizeBytes: 300_000 })).toEqual({ kind: "gone" });
  });

  it("reads no file of another folder of the source through a folder replaced by a link", async () => {
    const entry = entryOf("d/a.md");
    addFiles(root, { "other/a.md": "other" });
    swapForLink("other");
    expect(await read(entry)).toEqual({ kind: "gone" });
  });

  it("cancels an upload before its first byte when its folder was replaced by a link", async () => {
    // So large that its first part would leave before the whole is hashed.
    writeFileSync(join(outside, "a.pdf"), Buffer.alloc(3_000_000, "secret"));
    swapForLink(outside);
    const file = {
      path: "d/a.pdf",
      root,
      name: "a.pdf",
      sizeBytes: 3_000_000,
      hash: "0".repeat(64),
    };
    const sent: Buffer[] = [];
    await expect(async () => {
      for await (const chunk of uploadBody({ ...file, mediaType: "application/pdf" }).chunks)
        sent.push(chunk);
    }).rejects.toThrow(TornFile);
    expect(Buffer.concat(sent).toString()).not.toContain("secret");
  });
});

it("reads a file when the path to the root contains links, and when the root's link changes", async () => {
  const link = `${root}-link`;
  const second = makeTree({ "d/a.md": "second" });
  symlinkSync(root, link);
  try {
    const entry = entryOf("d/a.md");
    expect(await read(entry, link)).toMatchObject({ kind: "document", document: { content: "inside" } });
    rmSync(link);
    symlinkSync(second, link);
    expect(await read(entry, link)).toMatchObject({ kind: "document", document: { content: "second" } });
  } finally {
    rmSync(link);
    removeTree(second);
  }
});

it.each(["a (deleted)", "new\nline.md", "a\\012b.md", " .md"])("reads a file named %j", async (name) => {
  writeFileSync(join(root, name), "text");
  expect(await read(entryOf(name))).toMatchObject({ kind: "document", document: { content: "text" } });
});

it("checks the path again where the system does not list descriptors", () => {
  const expected = join(root, "d/a.md");
  const fd = openSync(expected, "r");
  const other = openSync(join(outside, "a.md"), "r");
  try {
    const place = { root, path: "d/a.md" };
    const blind = { descriptors: join(root, "no-such-folder") };
    expect(liesInside(fd, place, blind)).toBe(true);
    expect(liesInside(other, place, blind)).toBe(false);
    swapForLink("away");
    expect(liesInside(fd, place, blind)).toBe(false);
  } finally {
    closeSync(fd);
    closeSync(other);
  }
});
