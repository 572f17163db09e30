import { realpath } from "node:fs/promises";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { openRules, type WatchedSource } from "../../../src/sync/scan/rules/rules.ts";
import { countFolder, realFolder } from "../../../src/sync/scan/folder-contents.ts";

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return { ...real, realpath: vi.fn<typeof real.realpath>(real.realpath) };
});

const ALL = { forMs: 60_000, files: 1_000_000 };
const NEVER = new AbortController().signal;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "folder-contents-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function sourceOf(more: { readonly exclude?: readonly string[] } = {}): WatchedSource {
  const folders = [{ path: root, ...more }];
  const [source] = loadConfig({ cwd: "/", env: { KBSYNC_STATE_DIR: "/nowhere" }, folders }).sources;
  if (source === undefined) throw new Error("unreachable: one folder went in");
  return source;
}

describe("the count of a folder", () => {
  it("the count of a folder has what would be taken by kind, and names the first files", async () => {
    write({ "b.md": "12345", "a/x.md": "123", "a/y.pdf": "%PDF", "z.PNG": "12", Makefile: "all:" });
    expect(await countFolder(root, openRules(sourceOf()), NEVER, ALL)).toEqual({
      files: 5,
      bytes: 18,
      kinds: [
        { kind: "markdown", files: 2, bytes: 8 },
        { kind: "image", files: 1, bytes: 2 },
        { kind: "pdf", files: 1, bytes: 4 },
        { kind: "plain", files: 1, bytes: 4 },
      ],
      first: ["Makefile", "a/x.md", "a/y.pdf", "b.md", "z.PNG"],
      leftOut: [],
      unreadable: 0,
      unreadablePaths: [],
      complete: true,
    });
  });

  it("the count of a folder has what is left out by the rule that does it", async () => {
    write({
      "empty.md": "",
      ".hidden": "x",
      ".git/config": "x",
      "song.mp3": "x",
      "film.mp4": "x",
      "drafts/one.md": "x",
      "a.log": "x",
      "b.log": "x",
      ".kbsyncignore": "*.log\n",
      "huge.txt": "x",
      "kept.md": "x",
    });
    truncateSync(join(root, "huge.txt"), 40_000_000);
    symlinkSync("kept.md", join(root, "link.md"));
    const { files, leftOut } = await countFolder(
      root,
      openRules(sourceOf({ exclude: ["drafts/**"] })),
      NEVER,
      ALL,
    );
    expect(files).toBe(1);
    expect(leftOut.map(({ reason, ...counts }) => [reason, counts])).toEqual(
      expect.arrayContaining([
        [expect.stringContaining("*.log"), { files: 2, folders: 0, example: expect.any(String) }],
        ["a hidden file", { files: 2, folders: 0, example: expect.any(String) }],
        ["a hidden folder", { files: 0, folders: 1, example: ".git" }],
        ["the file is empty", { files: 1, folders: 0, example: "empty.md" }],
        [expect.stringContaining("drafts/**"), { files: 0, folders: 1, example: "drafts" }],
        [expect.stringMatching(/^larger than/), { files: 1, folders: 0, example: "huge.txt" }],
        [expect.stringContaining("symbolic link"), { files: 1, folders: 0, example: "link.md" }],
      ]),
    );
  });

  it("sums up the rules beyond the largest", async () => {
    for (let at = 0; at < 30; at += 1) write({ [`x.never${at}`]: "x" });
    const exclude = Array.from({ length: 30 }, (_, at) => `*.never${at}`);
    const { leftOut } = await countFolder(root, openRules(sourceOf({ exclude })), NEVER, ALL);
    expect(leftOut).toHaveLength(21);
    expect(leftOut.at(-1)).toMatchObject({ reason: "other rules", files: 10 });
    expect(leftOut.reduce((sum, { files }) => sum + files, 0)).toBe(30);
  });

  it("the count of a folder ends at its bounds, and says so", async () => {
    for (let at = 0; at < 300; at += 1) write({ [`d${at}/x.md`]: "x", [`d${at}/y.md`]: "y" });
    expect(await countFolder(root, openRules(sourceOf()), NEVER, { ...ALL, forMs: 0 })).toMatchObject({
      files: 0,
      complete: false,
    });
    expect((await countFolder(root, openRules(sourceOf()), NEVER, { ...ALL, files: 600 })).complete).toBe(
      true,
    );
  });
});

describe("the real path of a folder", () => {
  it("the real path of a folder is where a link leads", async () => {
    symlinkSync(root, `${root}-link`);
    try {
      expect(await realFolder(`${root}-link`, NEVER)).toBe(root);
    } finally {
      rmSync(`${root}-link`);
    }
  });

  it.each([
    ["nothing is there", "missing", "does not exist"],
    ["a file is there", "a.md", "is no folder"],
    ["a file is on the way", "a.md/below", "does not exist"],
  ])("says that %s", async (_what, path, words) => {
    write({ "a.md": "x" });
    await expect(realFolder(join(root, path), NEVER)).rejects.toMatchObject({
      code: "source_unusable",
      message: expect.stringContaining(words) as string,
    });
  });

  it("gives up a file system that does not answer, and ends with its caller", async () => {
    vi.mocked(realpath).mockReturnValue(new Promise(() => undefined));
    await expect(realFolder(root, NEVER, 0)).rejects.toMatchObject({
      message: expect.stringContaining("not answer") as string,
    });
    const leaving = new AbortController();
    const asked = realFolder(root, leaving.signal);
    await expect(realFolder(root, NEVER)).rejects.toMatchObject({ code: "probe_busy", retryable: true });
    leaving.abort(new Error("left"));
    await expect(asked).rejects.toThrow("left");
  });
});
