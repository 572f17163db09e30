import { closeSync, mkdirSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { liesInside } from "../../../src/sync/disk/file-location.ts";
import { readDocument, type ReadOutcome } from "../../../src/sync/read/read.ts";
import type { ScanEntry } from "../../../src/sync/plan/model.ts";
import { uploadBody, TornFile } from "../../../src/sync/remote/multipart.ts";
import { openRules } from "../../../src/sync/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../scan/tree.ts";

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

const entryOf = (path: string, link?: ScanEntry["link"]): ScanEntry => {
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  return { path, sizeBytes: size, mtimeMs, ctimeMs, ino, ...(link !== undefined && { link }) };
};
const read = async (entry: ScanEntry, at = root): Promise<ReadOutcome> =>
  await readDocument(join(at, entry.path), entry, openRules(sourceAt(at)));
const swapForLink = (to: string): void => {
  renameSync(join(root, "d"), join(root, "away"));
  symlinkSync(to, join(root, "d"));
};

describe("a folder that becomes a link after it was scanned", () => {
  it("gives nothing away when it leads outside, however large the file", async () => {
    const small = entryOf("d/a.md");
    swapForLink(outside);
    expect(await read(small)).toEqual({ kind: "gone" });
    expect(await read({ ...small, path: "d/big.md", sizeBytes: 300_000 })).toEqual({ kind: "gone" });
  });

  it("gives nothing of another folder of the source either", async () => {
    const entry = entryOf("d/a.md");
    addFiles(root, { "other/a.md": "other" });
    swapForLink("other");
    expect(await read(entry)).toEqual({ kind: "gone" });
  });

  it("breaks off an upload before its first byte", async () => {
    // So large that its first part would leave before the hash of the whole is known.
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
      for await (const chunk of uploadBody(file, "application/pdf").chunks) sent.push(chunk);
    }).rejects.toThrow(TornFile);
    expect(Buffer.concat(sent).toString()).not.toContain("secret");
  });
});

it("a file is read when the way to the root holds links, and when the root's link is set anew", async () => {
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

it.each(["a (deleted)", "new\nline.md", "a\\012b.md", " .md"])("a file named %j is read", async (name) => {
  writeFileSync(join(root, name), "text");
  expect(await read(entryOf(name))).toMatchObject({ kind: "document", document: { content: "text" } });
});

describe("a followed link", () => {
  it("is read through where it led when it was scanned", async () => {
    symlinkSync("d/a.md", join(root, "l.md"));
    const link = { real: join(root, "d/a.md"), mark: "7" };
    const outcome = await read(entryOf("l.md", link));
    expect(outcome).toMatchObject({ kind: "document", document: { content: "inside", entry: { link } } });
  });

  it("is not read when its target became a link, or its folder one that leads outside", async () => {
    symlinkSync("d/a.md", join(root, "l.md"));
    const entry = entryOf("l.md", { real: join(root, "d/a.md"), mark: "7" });
    swapForLink(outside);
    expect(await read(entry)).toEqual({ kind: "gone" });
    rmSync(join(root, "d"));
    mkdirSync(join(root, "d"));
    symlinkSync(join(outside, "a.md"), join(root, "d/a.md"));
    expect(await read(entry)).toEqual({ kind: "gone" });
  });
});

it("where the system does not tell what a descriptor stands for, the path is looked at again", () => {
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
