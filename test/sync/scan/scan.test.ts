import { spawnSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Scan } from "../../../src/sync/plan/model.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { scanPaths, scanSource } from "../../../src/sync/scan/scan.ts";
import { rootIdentityOf } from "../../../src/sync/scan/disk/root-identity.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "./tree.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

async function scanAll(fields: SourceFields = {}): Promise<Scan> {
  return await scanSource(root, openRules(sourceAt(root, fields)));
}

function pathsOf(scan: Scan): string[] {
  return scan.entries.map(({ path }) => path).sort();
}

describe("scanSource", () => {
  it("returns every wanted file with its facts, and the root's identity", async () => {
    addFiles(root, { "a.md": "alpha", "b/c/d.txt": "delta", ".hidden/x.md": "x", "empty/": "" });
    const scan = await scanAll();
    expect(pathsOf(scan)).toEqual(["a.md", "b/c/d.txt"]);
    const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, "a.md"));
    expect(scan.entries.find(({ path }) => path === "a.md")).toEqual({
      path: "a.md",
      sizeBytes: size,
      mtimeMs,
      ctimeMs,
      ino,
    });
    expect(scan.root).toEqual(rootIdentityOf(statSync(root)));
    expect(scan.scope).toBeUndefined();
    expect(scan.unreadable).toMatchObject([]);
  });

  it("ignores links, FIFOs and sockets", async () => {
    addFiles(root, { "a.md": "a", "folder/b.md": "b" });
    symlinkSync("a.md", join(root, "link.md"));
    symlinkSync("folder", join(root, "linked"));
    symlinkSync("..", join(root, "folder/loop"));
    spawnSync("mkfifo", [join(root, "pipe.md")]);
    const server = createServer().listen(join(root, "socket.md"));
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const scan = await scanAll();
      expect(pathsOf(scan)).toEqual(["a.md", "folder/b.md"]);
      expect(scan.refused).toEqual([]);
    } finally {
      server.close();
    }
  });

  it("scans a root that is a symbolic link", async () => {
    addFiles(root, { "real/a.md": "a" });
    symlinkSync("real", join(root, "link"));
    const scan = await scanSource(join(root, "link"), openRules(sourceAt(join(root, "link"))));
    expect(pathsOf(scan)).toEqual(["a.md"]);
  });

  it.each(["missing", "file.md", "file.md/below"])("reports that there is no root at %s", async (name) => {
    addFiles(root, { "file.md": "x" });
    const path = join(root, name);
    const scan = await scanSource(path, openRules(sourceAt(path)));
    expect(scan).toEqual({
      root: undefined,
      entries: [],
      unreadable: [],
      refused: [],
      skipped: [],
      scope: undefined,
    });
  });

  it("returns nothing of a root that was replaced during the scan", async () => {
    const tree = join(root, "tree");
    for (let n = 0; n < 300; n++) addFiles(tree, { [`d${n}/a.md`]: "a" });
    const rules = openRules(sourceAt(tree));
    let asked = 0;
    const watched = {
      ...rules,
      inFolder: (path: string) => {
        if (++asked === 100) {
          renameSync(tree, join(root, "away"));
          mkdirSync(tree);
        }
        return rules.inFolder(path);
      },
    };
    const scan = await scanSource(tree, watched);
    expect(asked).toBe(100);
    expect(scan).toMatchObject({ root: undefined, entries: [] });
  });

  it("refuses files by size and skips files by kind, without reading them", async () => {
    addFiles(root, {
      "a.md": "",
      "b.md": "123456",
      "c.doc": "x",
      "d.md": "12345",
      "e.zip": "",
      "f.mp4": "1234567",
    });
    const scan = await scanAll({ maxFileBytes: 5 });
    expect(pathsOf(scan)).toEqual(["a.md", "d.md"]);
    expect(scan.refused).toEqual([{ path: "b.md", reason: "6 bytes, larger than maxFileBytes (5)" }]);
    expect(new Map(scan.skipped.map(({ entry: { path }, reason }) => [path, reason]))).toEqual(
      new Map([
        ["c.doc", ".doc is an office document of a format that is not read: no text is taken from it"],
        ["e.zip", ".zip is an archive: no text is taken from it"],
        ["f.mp4", ".mp4 is a film: no text is taken from it"],
      ]),
    );
  });

  it("reports names that are not UTF-8, and scans unusual ones that are", async () => {
    const odd = ["new\nline.md", "\uFFFD.md", "e\u0301.md", "\u00E9.md", "quote'\".md", "-rf.md", " .md"];
    for (const name of odd) addFiles(root, { [name]: "x" });
    addFiles(root, { "\uFFFDfolder/a.md": "a" });
    writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([0xff]), Buffer.from(".md")]), "x");
    mkdirSync(Buffer.concat([Buffer.from(`${root}/folder`), Buffer.from([0xfe])]));
    const scan = await scanAll();
    expect(pathsOf(scan)).toEqual([...odd, "\uFFFDfolder/a.md"].sort());
    expect(scan.refused.map(({ path }) => path).sort()).toEqual(["bad\uFFFD.md", "folder\uFFFD"]);
    expect(scan.refused[0]?.reason).toContain("not valid UTF-8");
  });

  it("reads an ignore file that changed between two scans", async () => {
    addFiles(root, { "a.md": "a", "b.md": "b", ".kbsyncignore": "a.md" });
    const rules = openRules(sourceAt(root));
    expect(pathsOf(await scanSource(root, rules))).toEqual(["b.md"]);
    addFiles(root, { ".kbsyncignore": "b.md # no comment\nb.md" });
    expect(pathsOf(await scanSource(root, rules))).toEqual(["a.md"]);
    unlinkSync(join(root, ".kbsyncignore"));
    expect(pathsOf(await scanSource(root, rules))).toEqual(["a.md", "b.md"]);
  });

  it("takes a folder with an unreadable ignore file for unreadable", async () => {
    addFiles(root, { "a/x.md": "x", "a/.kbsyncignore": "x".repeat(2 ** 20 + 1), "b.md": "b" });
    const scan = await scanAll();
    expect(pathsOf(scan)).toEqual(["b.md"]);
    expect(scan.unreadable).toMatchObject([{ path: "a", code: "EFBIG" }]);
  });

  it("stops when the signal aborts", async () => {
    for (let n = 0; n < 50; n++) addFiles(root, { [`d${n}/a.md`]: "a" });
    // So slow that the first slice cannot reach the end.
    const rules = openRules(sourceAt(root));
    const slow = { ...rules, inFolder: (path: string) => spend(1, () => rules.inFolder(path)) };
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(scanSource(root, slow, { signal })).rejects.toThrow("stop");
  });
});

/** Blocks the thread for a while before it answers. */
function spend<T>(ms: number, then: () => T): T {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return then();
}

it("distinguishes a root from another folder with the same inode number", () => {
  const stats = statSync(root);
  const first = rootIdentityOf(Object.assign(Object.create(stats), { ino: 7, birthtimeMs: 1000.5 }));
  const second = rootIdentityOf(Object.assign(Object.create(stats), { ino: 7, birthtimeMs: 2000.5 }));
  expect(first.dev).toBe(stats.dev);
  expect(second.ino).not.toBe(first.ino);
  // Without a time of birth, the number alone decides.
  expect(rootIdentityOf(Object.assign(Object.create(stats), { ino: 7, birthtimeMs: 0 }))).toEqual({
    dev: stats.dev,
    ino: 7,
  });
});

describe("scanPaths", () => {
  async function look(paths: string[], fields: SourceFields = {}): Promise<Scan> {
    return await scanPaths(root, openRules(sourceAt(root, fields)), paths);
  }

  it("scans the given files and folders and nothing else", async () => {
    addFiles(root, { "a.md": "a", "b/c.md": "c", "b/d/e.md": "e", "f.md": "f" });
    const scan = await look(["a.md", "b", "b/d", "b/d/e.md", "gone.md", "b"]);
    expect(pathsOf(scan)).toEqual(["a.md", "b/c.md", "b/d/e.md"]);
    expect([...(scan.scope ?? [])].sort()).toEqual(["a.md", "b", "gone.md"]);
  });

  it("finds nothing behind a folder that is excluded, gone, a file or a link", async () => {
    addFiles(root, {
      ".git/a.md": "a",
      "real/b.md": "b",
      "file.md": "x",
      "out/c.md": "c",
      ".kbsyncignore": "out",
    });
    symlinkSync("real", join(root, "link"));
    const paths = [".git/a.md", "link/b.md", "link", "file.md/x.md", "out/c.md", "gone/d.md"];
    const scan = await look(paths);
    expect(scan).toMatchObject({ entries: [], unreadable: [], refused: [] });
    expect(scan.root).toBeDefined();
  });

  it("takes a path below an unreadable ignore file for unreadable", async () => {
    addFiles(root, { "a/.kbsyncignore": "x".repeat(2 ** 20 + 1), "a/b/x.md": "x" });
    expect((await look(["a/b/x.md"])).unreadable).toMatchObject([{ path: "a", code: "EFBIG" }]);
    expect((await look(["a/b"])).unreadable).toMatchObject([{ path: "a", code: "EFBIG" }]);
    expect((await look(["a"])).unreadable).toMatchObject([{ path: "a", code: "EFBIG" }]);
  });

  it("reports a missing root in a scan of paths", async () => {
    rmSync(root, { recursive: true });
    expect(await look(["a.md"])).toMatchObject({ root: undefined, entries: [], scope: ["a.md"] });
  });

  it("agrees with the whole scan for any part of it", async () => {
    const name = fc.constantFrom("a", "b", "c.md", ".h", "e.md");
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
    await fc.assert(
      fc.asyncProperty(
        fc.array(path, { maxLength: 8 }),
        fc.array(path, { maxLength: 4 }),
        async (files, paths) => {
          const tree = makeTree({});
          try {
            for (const file of files) {
              // A name may already be taken by a folder or a file; then this one is omitted.
              whereItFits(() => addFiles(tree, { [file]: "x" }));
            }
            const rules = openRules(sourceAt(tree));
            const whole = pathsOf(await scanSource(tree, rules));
            const part = pathsOf(await scanPaths(tree, rules, paths));
            const covered = whole.filter((file) =>
              paths.some((each) => file === each || file.startsWith(`${each}/`)),
            );
            expect(part).toEqual(covered);
          } finally {
            removeTree(tree);
          }
        },
      ),
    );
  });
});

function whereItFits(write: () => void): void {
  try {
    write();
  } catch {
    // EEXIST, EISDIR or ENOTDIR
  }
}
