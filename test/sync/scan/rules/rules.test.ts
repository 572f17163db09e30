import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openRules, type Rules } from "../../../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "../tree.ts";
import { randomRuns } from "../../../random-runs.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

function rulesFor(fields: SourceFields = {}, files: Record<string, string> = {}): Rules {
  addFiles(root, files);
  return openRules(sourceAt(root, fields));
}

function reasonFor(rules: Rules, path: string): string | undefined {
  const verdict = rules.wants(path);
  return verdict.wanted ? undefined : verdict.reason;
}

describe("names that are never documents", () => {
  const cases: [what: string, path: string, reason: string][] = [
    ["a hidden file", ".env", "a hidden file"],
    ["a file in a hidden folder", "a/.git/config", "in a/.git: a hidden folder"],
    ["Vim's swap file", ".notes.md.swp", "hidden"],
    ["Vim's swap file without a dot", "notes.md.swo", "Vim"],
    ["Vim's probe", "4913", "Vim"],
    ["a backup", "notes.md~", "backup"],
    ["a backup of kbsync's", "old/kbsync-20260102T030405Z/service/uploads/a", "kbsync's"],
    ["an unfinished one", "kbsync-20260102T030405Z.partial-4711/manifest.json", "kbsync's"],
    ["Emacs' autosave", "#notes.md#", "Emacs"],
    ["Emacs' lock", ".#notes.md", "hidden"],
    ["LibreOffice's lock", ".~lock.report.odt#", "hidden"],
    ["Office's lock", "~$report.docx", "office"],
    ["JetBrains' safe write", "notes.md___jb_tmp___", "JetBrains"],
    ["JetBrains' old copy", "notes.md___jb_old___", "JetBrains"],
    ["gedit's safe write", ".goutputstream-X1Y2Z3", "hidden"],
    ["rsync's part", ".notes.md.aB3xYz", "hidden"],
    ["Kate's swap file", "notes.md.kate-swp", "Kate"],
    ["an atomic save", "notes.md.tmp", "temporary"],
    ["an atomic save with process and time", "notes.md.tmp.4711.1700000000", "temporary"],
    ["a safe save of macOS", "notes.md.sb-1a2b3c4d-Xy12Za", "temporary"],
    ["a Firefox download", "paper.pdf.part", "download"],
    ["a Chromium download", "paper.pdf.crdownload", "download"],
    ["a Safari download", "paper.pdf.download", "download"],
    ["a torrent's part", "paper.pdf.!ut", "download"],
    ["an aria2 note", "paper.pdf.aria2", "download"],
    ["an Opera download", "paper.pdf.opdownload", "download"],
    ["any partial download", "paper.pdf.PARTIAL", "download"],
  ];
  it.each(cases)("the rules exclude %s", (_, path, reason) => {
    expect(reasonFor(rulesFor(), path)).toContain(reason);
  });

  const wanted = [
    "README",
    "a.md",
    "a b/ü.md",
    "template.md",
    "part.md",
    "5000",
    "#1 plan.md",
    "temp.md",
    "a.b.c",
  ];
  it.each(wanted)("the rules include %s", (path) => {
    expect(rulesFor().wants(path)).toEqual({ wanted: true });
  });
});

describe("ignore files", () => {
  it("excludes what a pattern matches, and names pattern and file", () => {
    const rules = rulesFor({}, { ".kbsyncignore": "# drafts\n\n*.log\ndrafts/\n/top.md\n" });
    expect(reasonFor(rules, "deep/er/x.log")).toBe("left out by `*.log` in .kbsyncignore:3");
    expect(reasonFor(rules, "a/drafts/b/x.md")).toBe("in a/drafts: left out by `drafts/` in .kbsyncignore:4");
    expect(reasonFor(rules, "top.md")).toBe("left out by `/top.md` in .kbsyncignore:5");
    expect(rules.wants("a/top.md").wanted).toBe(true);
    expect(rules.entersFolder("drafts").wanted).toBe(false);
    expect(rules.wants("drafts").wanted).toBe(true); // a file of that name
  });

  it("applies a nested ignore file below its folder, after those above", () => {
    const rules = rulesFor(
      {},
      {
        ".kbsyncignore": "*.log\n",
        "a/.kbsyncignore": "!keep.log\nonly/here.md\nplain\n",
      },
    );
    expect(rules.wants("a/keep.log").wanted).toBe(true);
    expect(rules.wants("a/b/keep.log").wanted).toBe(true);
    expect(rules.wants("keep.log").wanted).toBe(false);
    expect(rules.wants("a/only/here.md").wanted).toBe(false);
    expect(rules.wants("a/b/only/here.md").wanted).toBe(true);
    expect(rules.wants("a/b/plain").wanted).toBe(false);
    expect(rules.wants("plain").wanted).toBe(true);
  });

  it("does not undo a parent folder's exclusion", () => {
    const rules = rulesFor({}, { ".kbsyncignore": "out/\n!out/in.md\n", "out/.kbsyncignore": "!in.md\n" });
    expect(reasonFor(rules, "out/in.md")).toContain("in out: left out by `out/`");
  });

  it("recognises ignore files, and reads a changed one after reload", () => {
    const rules = rulesFor({}, { ".kbsyncignore": "a.md\n" });
    expect(rules.isRulesFile(".kbsyncignore")).toBe(true);
    expect(rules.isRulesFile("a/b/.kbsyncignore")).toBe(true);
    expect(rules.isRulesFile("a.kbsyncignore")).toBe(false);
    expect(rules.wants("a.md").wanted).toBe(false);
    writeFileSync(join(root, ".kbsyncignore"), "b.md\n");
    utimesSync(join(root, ".kbsyncignore"), 1, 1);
    rules.reload();
    expect(rules.wants("a.md").wanted).toBe(true);
    expect(rules.wants("b.md").wanted).toBe(false);
    rmSync(join(root, ".kbsyncignore"));
    rules.reload();
    rules.reload();
    expect(rules.wants("b.md").wanted).toBe(true);
  });

  it("wants nothing below an unreadable ignore file", () => {
    const rules = rulesFor({}, { "a/.kbsyncignore": "x".repeat(1024 * 1024 + 1), "a/b/.kbsyncignore": "y" });
    expect(reasonFor(rules, "a/b/c.md")).toBe("a/.kbsyncignore is larger than 1 MB and is not read");
    expect(rules.inFolder("a/b").unreadable).toMatchObject({ path: "a", code: "EFBIG" });
    expect(rules.wants("b.md").wanted).toBe(true);
  });

  it("the matcher of ignore files stays correct for more paths than the matcher caches", () => {
    const rules = rulesFor({}, { ".kbsyncignore": "*9.md\n" });
    for (let n = 0; n < 10_000; n++) expect(rules.wants(`f${n}.md`).wanted).toBe(n % 10 !== 9);
  });

  it.skipIf(spawnSync("git", ["--version"]).status !== 0)("agrees with git", () => {
    const name = fc.constantFrom("a", "b", "c.md", "d.log", "[x]", "e f", "*s");
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
    const pattern = fc.oneof(
      path,
      fc.constantFrom(
        "*",
        "*.md",
        "**/b",
        "a/**",
        "a/*",
        "/a",
        "b/",
        "!*.md",
        "!a/",
        "!b",
        "c.*",
        "?",
        "\\[x\\]",
        "e f",
        "e f ",
      ),
      path.map((text) => `!${text}`),
      path.map((text) => `/${text}/`),
    );
    const patterns = fc.array(pattern, { maxLength: 5 });
    const setting = fc.record({
      top: patterns,
      inner: patterns,
      folder: fc.constantFrom("a", "a/b", "[x]", "*s/e f"),
      paths: fc.array(path, { minLength: 1, maxLength: 12 }),
      // The file of the name that kbsync reads; Git's own, with the rules of the repository above.
      isGits: fc.boolean(),
      above: fc.array(fc.constantFrom("*.md", "b/", "!c.md", "/*/a", "e f"), { maxLength: 2 }),
    });

    const repository = makeTree({});
    spawnSync("git", ["init", "-q"], { cwd: repository });
    let runs = 0;
    try {
      fc.assert(
        fc.property(setting, ({ top, inner, folder, paths, isGits, above }) => {
          const folderOfRun = join(repository, `run ${(runs += 1)}`);
          writeFileSync(join(repository, ".gitignore"), isGits ? above.join("\n") : "");
          for (const ignoreFile of [".gitignore", ...(isGits ? [] : [".kbsyncignore"])]) {
            mkdirSync(join(folderOfRun, folder), { recursive: true });
            writeFileSync(join(folderOfRun, ignoreFile), top.join("\n"));
            writeFileSync(join(folderOfRun, folder, ignoreFile), inner.join("\n"));
          }
          const { stdout } = spawnSync(
            "git",
            ["-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"],
            {
              cwd: folderOfRun,
              input: paths.join("\0"),
              encoding: "utf8",
            },
          );
          const ignored = new Set(stdout.split("\0").filter((text) => text !== ""));
          const rules = openRules(sourceAt(folderOfRun, isGits ? {} : { gitignore: false }));
          // Git checks paths that are folders in the tree as folders, so this does too.
          const folders = new Set(folder.split("/").map((_, at, parts) => parts.slice(0, at + 1).join("/")));
          for (const each of paths) {
            const verdict = folders.has(each) ? rules.entersFolder(each) : rules.wants(each);
            expect({ path: each, wanted: verdict.wanted }).toEqual({
              path: each,
              wanted: !ignored.has(each),
            });
          }
        }),
        { numRuns: randomRuns(60) },
      );
    } finally {
      removeTree(repository);
    }
  });
});

describe("include, exclude and rules", () => {
  const cases: [glob: string, path: string, matches: boolean][] = [
    ["*.md", "a.md", true],
    ["*.md", "deep/a.md", true],
    ["/*.md", "deep/a.md", false],
    ["/*.md", "a.md", true],
    ["docs/*.md", "docs/a.md", true],
    ["docs/*.md", "docs/b/a.md", false],
    ["docs/**/*.md", "docs/b/a.md", true],
    ["docs/**/*.md", "docs/a.md", true],
    ["**/*.md", "a.md", true],
    ["docs", "docs/b/a.md", true],
    ["docs", "x/docs/a.md", true],
    ["docs/", "docs/a.md", true],
    ["docs/", "docs", false],
    ["./docs/b", "docs/b/a.md", true],
    ["{a,b}/*.{md,txt}", "b/x.txt", true],
    ["docs/[ab].md", "docs/b.md", true],
    ["*.MD", "a.md", false],
    ["\\[x\\]/a.md", "[x]/a.md", true],
    ["!a.md", "b.md", false],
    ["a (copy).md", "a (copy).md", true],
    ["**/*(1).md", "b/a(1).md", true],
    ["a (old)/", "a (old)/b.md", true],
    ["a (old)", "a (old)/b/c.md", true],
    ["(a|b).md", "a.md", true],
    ["é/".normalize("NFC"), "é/a.md".normalize("NFD"), true],
    ["é*.md".normalize("NFD"), "é1.md".normalize("NFC"), true],
  ];
  it.each(cases)("matches glob %s against %s: %s", (glob, path, matches) => {
    expect(rulesFor({ include: [glob] }).wants(path).wanted).toBe(matches);
    expect(rulesFor({ exclude: [glob] }).wants(path).wanted).toBe(!matches);
    const rule = rulesFor({ rules: [{ match: glob, description: "D" }] }).descriptionRule(path);
    expect(rule?.description).toBe(matches ? "D" : undefined);
  });

  it("takes the path of the source in a glob for its folder", () => {
    const rules = rulesFor({ exclude: [`${root}/secret`] });
    expect(rules.wants("secret/a.md").wanted).toBe(false);
    expect(rules.wants("b/secret/a.md").wanted).toBe(true);
  });

  it("names the glob that excludes, and reports that none includes", () => {
    const rules = rulesFor({ include: ["docs/**"], exclude: ["docs/old/**"] });
    expect(reasonFor(rules, "docs/old/a.md")).toBe("in docs/old: left out by `docs/old/**` in `exclude`");
    expect(reasonFor(rules, "b.md")).toBe("matches none of the globs in `include`");
  });

  it("does not enter folders that contain nothing wanted", () => {
    const rules = rulesFor({ include: ["docs/guides/*.md"], exclude: ["old"] });
    expect(rules.entersFolder("docs").wanted).toBe(true);
    expect(rules.entersFolder("docs/guides").wanted).toBe(true);
    expect(rules.entersFolder("src").wanted).toBe(false);
    expect(rules.entersFolder("docs/guides/old").wanted).toBe(false);
    expect(rulesFor({ include: ["*.md"] }).entersFolder("any/where").wanted).toBe(true);
  });

  it("enters every folder above a wanted file", () => {
    const name = fc.constantFrom("a", "b", "c");
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
    const glob = fc
      .array(fc.constantFrom("a", "b", "*", "**", "c*", "b**", "{a,b}", "\\a", "!a"), {
        minLength: 1,
        maxLength: 4,
      })
      .map((parts) => parts.join("/"));
    fc.assert(
      fc.property(
        fc.array(glob, { maxLength: 2 }),
        fc.array(glob, { maxLength: 2 }),
        path,
        (include, exclude, file) => {
          const rules = openRules(sourceAt(root, { include, exclude }));
          const matches = (globs: readonly string[]): boolean =>
            globs.some(
              (text) =>
                openRules(sourceAt(root, { rules: [{ match: text, description: "D" }] })).descriptionRule(
                  file,
                ) !== undefined,
            );
          const expected = (include.length === 0 || matches(include)) && !matches(exclude);
          expect(rules.wants(file).wanted).toBe(expected);
        },
      ),
    );
  });

  it("lets the last matching rule with a description decide", () => {
    const rules = rulesFor({
      rules: [
        { match: "**/*.md", description: "first" },
        { match: "b/**", description: "second" },
        { match: "b/x.*" },
      ],
    });
    const described = (path: string): string | undefined => rules.descriptionRule(path)?.description;
    expect(["a/x.md", "b/x.md", "b/x.txt", "x.txt"].map(described)).toEqual([
      "first",
      "second",
      "second",
      undefined,
    ]);
  });
});
