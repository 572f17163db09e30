import { lstatSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Scan } from "../../../src/sync/plan/model.ts";
import { openRules, type Rules } from "../../../src/sync/scan/rules/rules.ts";
import { scanPaths, scanSource } from "../../../src/sync/scan/scan.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "./tree.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

const follow = (fields: SourceFields = {}): Rules =>
  openRules(sourceAt(root, { followSymlinks: true, ...fields }));
const link = (path: string, to: string): void => symlinkSync(to, join(root, path));
const pathsOf = (scan: Scan): string[] => scan.entries.map(({ path }) => path).sort();
const leftOut = (scan: Scan): Record<string, string> =>
  Object.fromEntries(scan.skipped.map(({ entry, reason }) => [entry.path, reason]));

describe("links that are not followed", () => {
  it("excludes links that are not followed, with a reason, where the rules include their names", async () => {
    addFiles(root, { "a.md": "a", "d/b.md": "b", "out/": "", ".kbsyncignore": "out" });
    link("file.md", "a.md");
    link("folder", "d");
    link("nowhere.md", "missing");
    link(".hidden.md", "a.md");
    link("out/c.md", "../a.md");
    const rules = openRules(sourceAt(root));
    const scan = await scanSource(root, rules);
    expect(pathsOf(scan)).toEqual(["a.md", "d/b.md"]);
    const reason = "a symbolic link: not followed (`followSymlinks` of the source)";
    expect(leftOut(scan)).toEqual({ "file.md": reason, folder: reason, "nowhere.md": reason });
    expect(scan.skipped.every(({ absent }) => absent)).toBe(true);
    expect(await scanPaths(root, rules, ["folder/b.md", "file.md"])).toMatchObject({
      entries: [],
      skipped: [{ entry: { path: "file.md" }, reason }],
    });
    expect(rules.links.watches()).toEqual({ folders: [], points: [] });
  });
});

describe("links that are followed", () => {
  it("scans followed links as separate documents with the facts of their targets and their own numbers", async () => {
    addFiles(root, { "a.md": "alpha", "d/b.md": "b", "d/e/c.md": "c" });
    link("file.md", "a.md");
    link("d/folder", "e");
    link("chain.md", "file.md");
    const scan = await scanSource(root, follow());
    expect(pathsOf(scan)).toEqual(["a.md", "chain.md", "d/b.md", "d/e/c.md", "d/folder/c.md", "file.md"]);
    expect(scan.skipped).toEqual([]);
    const of = (path: string) => scan.entries.find((entry) => entry.path === path);
    const { size, mtimeMs, ctimeMs } = statSync(join(root, "a.md"));
    expect(of("file.md")).toMatchObject({ sizeBytes: size, mtimeMs, ctimeMs });
    expect(of("file.md")?.link?.real).toBe(join(root, "a.md"));
    expect(of("d/folder/c.md")?.link?.real).toBe(join(root, "d/e/c.md"));
    expect(of("a.md")?.link).toBeUndefined();
    expect(new Set(scan.entries.map(({ ino }) => ino)).size).toBe(scan.entries.length);
  });

  it("reports links as unreadable, not gone, when the system cannot resolve them", async () => {
    link("long.md", "x".repeat(256));
    expect(await scanSource(root, follow())).toMatchObject({
      entries: [],
      skipped: [],
      unreadable: [{ path: "long.md", code: "ENAMETOOLONG" }],
    });
  });

  it("gives files at any depth of a linked folder their own numbers, and watches it", async () => {
    addFiles(root, { "d/e/g/x.md": "x" });
    link("f", "d");
    const rules = follow();
    const { entries } = await scanSource(root, rules);
    const of = (path: string) => entries.find((entry) => entry.path === path);
    expect(of("f/e/g/x.md")?.link?.real).toBe(join(root, "d/e/g/x.md"));
    expect(of("f/e/g/x.md")?.ino).not.toBe(of("d/e/g/x.md")?.ino);
    expect(of("f/e/g/x.md")?.ino).toBeDefined();
  });

  it("keeps a link's number when it or its target is renamed, and changes it with the target", async () => {
    addFiles(root, { "a.md": "a", "b.md": "b", "d/x.md": "x" });
    link("l.md", "a.md");
    link("f", "d");
    const numbers = async (): Promise<Map<string, number>> =>
      new Map((await scanSource(root, follow())).entries.map(({ path, ino }) => [path, ino]));
    const before = await numbers();
    renameSync(join(root, "l.md"), join(root, "m.md"));
    renameSync(join(root, "f"), join(root, "g"));
    renameSync(join(root, "d/x.md"), join(root, "d/y.md"));
    const after = await numbers();
    expect(after.get("m.md")).toBe(before.get("l.md"));
    expect(after.get("g/y.md")).toBe(before.get("f/x.md"));
    unlinkSync(join(root, "m.md"));
    link("m.md", "b.md");
    expect((await numbers()).get("m.md")).not.toBe(before.get("l.md"));
  });

  it.each<readonly [string, Readonly<Record<string, string>>, Readonly<Record<string, string>>]>([
    ["to a folder above", { "a/b/up": ".." }, { "a/b/up": "leads back to a folder that contains it" }],
    ["to its own folder", { "a/self": "." }, { "a/self": "leads back to a folder that contains it" }],
    ["to the root", { "a/top": "..", all: "." }, { "a/top": "leads back", all: "leads back" }],
    ["to itself", { "a/x.md": "x.md" }, { "a/x.md": "leads nowhere" }],
    [
      "to each other",
      { "p.md": "q.md", "q.md": "p.md" },
      { "p.md": "leads nowhere", "q.md": "leads nowhere" },
    ],
    ["to nothing", { "a/x.md": "gone.md" }, { "a/x.md": "leads nowhere" }],
    ["through a file", { "a/x.md": "b/c.md/d" }, { "a/x.md": "leads nowhere" }],
    ["to a device", { "a/x.md": "/dev/null" }, { "a/x.md": "leads outside of the source" }],
    ["outside", { "a/x": "/usr" }, { "a/x": "leads outside of the source" }],
    ["outside through `..`", { "a/x": "../../.." }, { "a/x": "leads outside of the source" }],
  ])("reports why a link is not followed that leads %s", async (_name, links, reasons) => {
    addFiles(root, { "a/b/c.md": "c" });
    for (const [path, to] of Object.entries(links)) link(path, to);
    const scan = await scanSource(root, follow());
    expect(pathsOf(scan)).toEqual(["a/b/c.md"]);
    expect(Object.keys(leftOut(scan)).sort()).toEqual(Object.keys(reasons).sort());
    for (const [path, words] of Object.entries(reasons)) expect(leftOut(scan)[path]).toContain(words);
  });

  it("reports a link again when the reason changes", async () => {
    link("x.md", "gone.md");
    const facts = async () => (await scanSource(root, follow())).skipped[0]?.entry;
    const before = await facts();
    expect(await facts()).toEqual(before);
    addFiles(root, { "gone.md/": "" });
    unlinkSync(join(root, "x.md"));
    link("x.md", "..");
    expect((await facts())?.ino).not.toBe(before?.ino);
  });

  it("ends at two folders that link to each other", async () => {
    addFiles(root, { "a/1.md": "1", "b/2.md": "2" });
    link("a/x", "../b");
    link("b/y", "../a");
    const scan = await scanSource(root, follow());
    expect(pathsOf(scan)).toEqual(["a/1.md", "a/x/2.md", "b/2.md", "b/y/1.md"]);
    expect(Object.keys(leftOut(scan)).sort()).toEqual(["a/x/y", "b/y/x"]);
  });

  it("bounds the paths through many folders that link to each other", async () => {
    const folders = Array.from({ length: 8 }, (_, n) => `f${n}`);
    for (const folder of folders) {
      addFiles(root, { [`${folder}/a.md`]: folder });
      for (const other of folders) if (other !== folder) link(`${folder}/${other}`, `../${other}`);
    }
    const scan = await scanSource(root, follow());
    // For each start folder: one path without a link, 7 with one, 7 × 6 with two, 7 × 6 × 5 with three.
    expect(scan.entries).toHaveLength(8 * (1 + 7 + 7 * 6 + 7 * 6 * 5));
    expect(Object.values(leftOut(scan))).toContain("a symbolic link that is behind 3 others");
  });

  it("includes targets that are excluded at their own paths, and applies the rules to the link's path", async () => {
    addFiles(root, {
      ".data/v1/a.md": "a",
      "drafts/b.md": "b",
      "drafts/.kbsyncignore": "c.md",
      "drafts/c.md": "c",
      "drafts/.git/d.md": "d",
    });
    link(".data/now", "v1");
    link("a.md", ".data/now/a.md");
    link("public", "drafts");
    link("x.zip", "drafts/b.md");
    link("no.log", "drafts/b.md");
    const rules = follow({ exclude: ["/drafts/", "*.log"] });
    const scan = await scanSource(root, rules);
    expect(pathsOf(scan)).toEqual(["a.md", "public/b.md"]);
    expect(leftOut(scan)["x.zip"]).toContain("an archive");
    const { folders, points } = rules.links.watches();
    expect([...folders].sort()).toEqual([".data", ".data/v1", "drafts"]);
    expect(points).toEqual(expect.arrayContaining(["a.md", ".data/now", ".data/v1/a.md", "drafts"]));
  });

  it("refuses links by the size of their targets", async () => {
    addFiles(root, { "a.md": "123456" });
    link("l.md", "a.md");
    const scan = await scanSource(root, follow({ maxFileBytes: 5 }));
    expect(scan.refused.map(({ path }) => path).sort()).toEqual(["a.md", "l.md"]);
  });

  it("finds single links like a whole scan", async () => {
    addFiles(root, { "a/1.md": "1", "b/c/2.md": "2" });
    link("a/x", "../b");
    link("l.md", "a/1.md");
    const rules = follow();
    const whole = await scanSource(root, rules);
    const entries = (scan: Scan) => scan.entries.toSorted((p, q) => (p.path < q.path ? -1 : 1));
    expect(entries(await scanPaths(root, rules, ["a/x/c/2.md", "l.md", "a/1.md", "b"]))).toEqual(
      entries(whole),
    );
    expect(entries(await scanPaths(root, rules, ["a/x", "a/gone/1.md"]))).toMatchObject([
      { path: "a/x/c/2.md" },
    ]);
    expect((await scanPaths(root, rules, ["a/x/c"])).scope).toEqual(["a/x/c"]);
  });

  it("reports only removed links as absent", async () => {
    addFiles(root, { "a/1.md": "1" });
    link("f", "a");
    const rules = follow();
    await scanSource(root, rules);
    expect(rules.links.touchedBy("a/1.md")).toEqual(["f/1.md"]);
    rmSync(join(root, "f"));
    expect(pathsOf(await scanPaths(root, rules, ["f"]))).toEqual([]);
    expect(rules.links.touchedBy("a/1.md")).toEqual([]);
    expect(lstatSync(join(root, "a/1.md")).isFile()).toBe(true);
  });
});

describe("what a change touches beside itself", () => {
  it("maps a change to every path that leads to it through links, and to links that it may repair", async () => {
    addFiles(root, { "a.md": "a", "d/e/x.md": "x" });
    link("l.md", "a.md");
    link("chain.md", "l.md");
    link("f", "d");
    link("g", "f/e");
    link("broken.md", "later/y.md");
    const rules = follow();
    await scanSource(root, rules);
    const touched = (path: string): string[] => [...rules.links.touchedBy(path)].sort();
    expect(touched("a.md")).toEqual(["chain.md", "l.md"]);
    expect(touched("l.md")).toEqual(["chain.md"]);
    expect(touched("d/e/x.md")).toEqual(["f/e/x.md", "g/x.md"]);
    expect(touched("d/new.md")).toEqual(["f/new.md"]);
    expect(touched("d")).toEqual(["f", "g"]);
    expect(touched("f")).toEqual(["g"]);
    expect(touched("later")).toEqual(["broken.md"]);
    expect(touched("other.md")).toEqual([]);
    mkdirSync(join(root, "later"));
    addFiles(root, { "later/y.md": "y" });
    expect(pathsOf(await scanPaths(root, rules, ["broken.md"]))).toEqual(["broken.md"]);
  });

  it("notifies a listener once when links have changed", async () => {
    const rules = follow();
    let reported = 0;
    rules.links.listen(() => (reported += 1));
    addFiles(root, { "a.md": "a" });
    link("l.md", "a.md");
    await scanSource(root, rules);
    await scanSource(root, rules);
    await scanPaths(root, rules, ["l.md", "a.md"]);
    expect(reported).toBe(1);
    unlinkSync(join(root, "l.md"));
    await scanSource(root, rules);
    expect(reported).toBe(2);
  });
});
