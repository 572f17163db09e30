import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openRules, type Rules } from "../../../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "../tree.ts";

let top = "";
beforeEach(() => {
  top = makeTree({ ".git/HEAD": "ref: refs/heads/main", ".gitignore": "*.log\n/docs/made/\n" });
});
afterEach(() => removeTree(top));

function rulesIn(folder: string, fields: SourceFields = {}): Rules {
  mkdirSync(join(top, folder), { recursive: true });
  return openRules(sourceAt(join(top, folder), fields));
}

function reasonFor(rules: Rules, path: string): string | undefined {
  const verdict = rules.wants(path);
  return verdict.wanted ? undefined : verdict.reason;
}

describe("a source in a Git work tree", () => {
  it("leaves out what the tree's ignore files name, those above the source too", () => {
    addFiles(top, { "docs/.gitignore": "draft.md\n" });
    const rules = rulesIn("docs");
    expect(reasonFor(rules, "a/b.log")).toBe("left out by `*.log` in ../.gitignore:1");
    expect(reasonFor(rules, "made/a.md")).toBe("in made: left out by `/docs/made/` in ../.gitignore:2");
    expect(reasonFor(rules, "draft.md")).toBe("left out by `draft.md` in .gitignore:1");
    expect(rules.wants("a.md").wanted).toBe(true);
  });

  it("never contains the repository itself", () => {
    expect(rulesIn("").entersFolder(".git").wanted).toBe(false);
  });

  it("can ignore its ignore files", () => {
    expect(rulesIn("docs", { gitignore: false }).wants("a.log").wanted).toBe(true);
  });

  it("lets .kbsyncignore decide first: it includes what Git ignores, and Git includes nothing that it excludes", () => {
    addFiles(top, {
      "docs/.kbsyncignore": "!made/\nsecret/\n",
      "docs/a/.gitignore": "!secret/\n!a.log\n",
    });
    const rules = rulesIn("docs");
    expect(rules.wants("made/a.md").wanted).toBe(true);
    expect(reasonFor(rules, "a/secret/b.md")).toContain("left out by `secret/` in .kbsyncignore:2");
    expect(rules.wants("a/a.log").wanted).toBe(true);
  });

  it("applies in a repository inside of it, too", () => {
    addFiles(top, { "docs/inner/.git/HEAD": "ref: refs/heads/main", "docs/inner/.gitignore": "own.md\n" });
    const rules = rulesIn("docs");
    expect(rules.wants("inner/own.md").wanted).toBe(false);
    expect(rules.wants("inner/a.log").wanted).toBe(false);
    expect(rules.wants("inner/a.md").wanted).toBe(true);
  });

  it("is synced although the tree around it ignores it as a whole", () => {
    addFiles(top, { ".gitignore": "*\n" });
    expect(rulesIn("docs").wants("a.log").wanted).toBe(true);
    expect(rulesIn("").wants("a.log").wanted).toBe(false);
  });

  it("is found through a link to the source's folder", () => {
    mkdirSync(join(top, "docs"));
    const other = makeTree({});
    symlinkSync(join(top, "docs"), join(other, "link"));
    expect(openRules(sourceAt(join(other, "link"))).wants("a.log").wanted).toBe(false);
    removeTree(other);
  });

  it("goes on ignoring while the repository is gone for a moment", () => {
    addFiles(top, { "docs/.gitignore": "draft.md\n" });
    const rules = rulesIn("docs");
    expect(rules.wants("draft.md").wanted).toBe(false);
    rmSync(join(top, ".git"), { recursive: true });
    rules.reload();
    expect(rules.wants("draft.md").wanted).toBe(false);
    const memory = { settleMs: 0, now: () => 0, inForce: new Map([[".gitignore", "of an earlier start"]]) };
    const later = openRules(sourceAt(join(top, "docs")), {
      ignoreFiles: memory,
      mounts: { known: new Map(), hasFiles: () => false },
    });
    expect(later.wants("draft.md").wanted).toBe(false);
  });

  it("wants nothing below a .gitignore that cannot be decoded", () => {
    addFiles(top, { ".gitignore": Buffer.from("p\u00E4ss\n", "latin1") });
    expect(reasonFor(rulesIn("docs"), "a.md")).toBe("../.gitignore is not text in UTF-8 or UTF-16");
  });
});

it("a folder outside of every work tree has no .gitignore, unless the source says so", () => {
  rmSync(join(top, ".git"), { recursive: true });
  expect(rulesIn("").wants("a.log").wanted).toBe(true);
  expect(rulesIn("", { gitignore: true }).wants("a.log").wanted).toBe(false);
});

describe("folders that programs fill", () => {
  it.each([
    ["node_modules/a/README.md", []],
    ["deep/__pycache__/a.md", []],
    ["bower_components/a.md", []],
    ["env/lib/a.md", ["env/pyvenv.cfg"]],
    ["rust/target/doc/a.html", ["rust/Cargo.toml"]],
    ["java/target/a.md", ["java/pom.xml"]],
    ["android/build/a.md", ["android/build.gradle.kts"]],
  ])("are left out by default: %s", (path, signs) => {
    addFiles(top, Object.fromEntries(signs.map((sign) => [sign, ""])));
    expect(reasonFor(rulesIn(""), path)).toContain("left out by default: ");
  });

  it.each(["target/a.md", "build/a.md", "env/a.md", "node_modules"])(
    "are wanted if nothing shows what made them: %s",
    (path) => expect(rulesIn("").wants(path).wanted).toBe(true),
  );

  it("stay out where an ignore file includes the folder above", () => {
    addFiles(top, { ".kbsyncignore": "a/*\n!a/b/\n" });
    const rules = rulesIn("");
    expect(rules.wants("a/b/c.md").wanted).toBe(true);
    expect(rules.wants("a/b/node_modules/c.md").wanted).toBe(false);
  });

  it("are wanted if an ignore file or a glob names them", () => {
    addFiles(top, { ".kbsyncignore": "!node_modules/\n" });
    expect(rulesIn("").wants("a/node_modules/b/c.md").wanted).toBe(true);
    rmSync(join(top, ".kbsyncignore"));
    expect(rulesIn("", { include: ["node_modules/b/**"] }).wants("node_modules/b/c.md").wanted).toBe(true);
  });
});
