import { hash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { syncSettings } from "../../settings.ts";
import { openLedger, type Ledger } from "../../../../src/sync/ledger/ledger.ts";
import { openPasses, type PassPlan, type Passes, runPass } from "../../../../src/sync/daemon/pass/pass.ts";
import { rulesKeyOf } from "../../../../src/sync/daemon/pass/rules-key.ts";
import type { Candidate, RootIdentity, ScanEntry } from "../../../../src/sync/plan/model.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { type Agenda, openAgenda } from "../../../../src/sync/daemon/agenda/agenda.ts";
import { TIMING } from "../../../../src/sync/plan/timing.ts";
import { sourceAt } from "../../scan/tree.ts";

/** Folders that cannot be listed; a real disk does not refuse root. */
const unlisted = vi.hoisted(() => new Set<string>());
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const readdirSync = (...args: Parameters<typeof real.readdirSync>): unknown => {
    if (unlisted.has(String(args[0]))) throw Object.assign(new Error("no entry"), { code: "EACCES" });
    return Reflect.apply(real.readdirSync, real, args);
  };
  return { ...real, readdirSync };
});

let base: string;
let root: string;
let ledger: Ledger;
let source: number;
let agenda: Agenda;
/** Whether paths are checked again. Without, nothing of a pass is left to a later one. */
let takesMarks: boolean;
let passes: Passes;
let rulesKey: number;
/** How far ahead the clock of the passes is. */
let aheadMs: number;
/** Called whenever a pass finds that a path in flight has changed. */
let onChanged: (path: string) => void;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "kbsync-pass-"));
  root = join(base, "docs");
  mkdirSync(root);
  mkdirSync(join(base, "state"));
  ledger = openLedger(join(base, "state"), "service");
  source = ledger.sources.open(root, "owner", "fastest").id;
  onChanged = () => undefined;
  takesMarks = true;
  aheadMs = 0;
  const opened = openAgenda({ settleMs: 0, now: () => Date.now() + aheadMs, once: false });
  agenda = {
    ...opened,
    checkAgain: (path, atMs) => {
      onChanged(path);
      if (takesMarks) opened.checkAgain(path, atMs);
    },
  };
  const rules = openRules(sourceAt(root));
  rulesKey = rulesKeyOf(rules);
  passes = openPasses({
    source: { id: source, root, rules, rulesKey: () => rulesKey },
    context: {
      ledger,
      timing: TIMING,
      now: () => Date.now() + aheadMs,
      moved: () => undefined,
      report: () => undefined,
    },
    sync: syncSettings({ settleMs: 0, concurrency: 1 }),
    once: false,
    agenda,
    signal: new AbortController().signal,
  });
});
afterEach(() => {
  agenda.stop();
  unlisted.clear();
  ledger.close();
  rmSync(base, { recursive: true, force: true });
});

const write = (path: string, text = `text of ${path}`): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const entryAt = (path: string): ScanEntry => {
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  return { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
};
const plan = (paths: readonly string[]): Promise<PassPlan> => runPass(passes, { all: false, paths });
const planAll = (): Promise<PassPlan> => runPass(passes, { all: true, paths: [] });

/** Ends the job of a candidate: the service has acknowledged the file as it was seen. */
const acknowledge = ({ entry, known }: Candidate): void => {
  ledger.note(() => {
    const observed = {
      entry,
      rulesKey,
      hash: hash("sha256", `text of ${entry.path}`),
      digest: "d",
      title: entry.path,
      label: "l",
      extractorVersion: 1,
      shape: {
        kind: "content",
        tier: "fastest",
        ownerId: "owner",
        settings: { strategy: "recursive", chunkSize: 10, chunkOverlap: 1 },
      },
      fileUrl: undefined,
    } as const;
    if (known === undefined) ledger.files.insert(source, `doc of ${entry.path}`, "agreed", observed);
    else ledger.files.agree(known.id, `doc of ${entry.path}`, observed);
  });
  agenda.end(entry);
};
/** Files that the service has acknowledged, unchanged. */
const agree = (paths: readonly string[]): void => {
  for (const path of paths) acknowledge({ entry: entryAt(path), known: undefined });
};
const titles = ({ candidates }: PassPlan): string[] =>
  candidates.map(
    ({ entry, known, from }) => `${entry.path} ${from ?? (known === undefined ? "new" : "known")}`,
  );

describe("a file that is renamed while it is on its way", () => {
  /** More steps than a pass over two paths awaits. */
  const steps = Array.from({ length: 12 }, (_, step) => step);

  it.each(steps)(
    "a file renamed in flight gets no second resource when its create ends %i steps into the pass",
    async (step) => {
      write("old/a.md");
      write("other.md");
      agree(["other.md"]);
      const [candidate] = (await plan(["old"])).candidates;
      if (candidate === undefined) throw new Error("no candidate");
      agenda.queue([candidate]);
      renameSync(join(root, "old"), join(root, "new"));

      const planned = plan(["new"]);
      for (let passed = 0; passed < step; passed++) await Promise.resolve();
      acknowledge(candidate);
      expect(titles(await planned)).toEqual([]);
      expect([...agenda.due()]).toContain("new/a.md");
      expect(titles(await plan(["new/a.md"]))).toEqual(["new/a.md old/a.md"]);
    },
  );

  it.each(steps)(
    "a file renamed in flight keeps its resource when it is renamed back and its job ends %i steps into the pass",
    async (step) => {
      write("new/a.md");
      write("other.md");
      agree(["new/a.md", "other.md"]);
      const known = ledger.files.living(source, "new/a.md");
      const candidate = { entry: entryAt("new/a.md"), known };
      agenda.queue([candidate]);
      renameSync(join(root, "new"), join(root, "old"));

      const planned = plan(["new", "old"]);
      for (let passed = 0; passed < step; passed++) await Promise.resolve();
      agenda.end(candidate.entry);
      expect(titles(await planned)).toEqual([]);
      expect([...agenda.due()]).toContain("old/a.md");
      expect(titles(await plan(["new", "old"]))).toEqual(["old/a.md new/a.md"]);
    },
  );

  it("a file renamed in flight keeps its resource when its job is given up because the pass noticed the rename", async () => {
    write("new/a.md");
    write("other.md");
    agree(["new/a.md", "other.md"]);
    const candidate = { entry: entryAt("new/a.md"), known: ledger.files.living(source, "new/a.md") };
    agenda.queue([candidate]);
    renameSync(join(root, "new"), join(root, "old"));
    onChanged = () => agenda.end(candidate.entry);
    expect(titles(await planAll())).toEqual([]);
    expect(titles(await planAll())).toEqual(["old/a.md new/a.md"]);
  });
});

describe("a file that is absent for a moment", () => {
  beforeEach(async () => {
    for (const path of ["a.md", "b.md", "c.md"]) write(path);
    agree(["a.md", "b.md", "c.md"]);
    await planAll();
    renameSync(join(root, "a.md"), join(base, "a.md"));
    await plan(["a.md"]);
  });

  it.each([400, 600, 1500])(
    "a file absent for a moment keeps its row when it is rewritten after %i ms",
    async (absentMs) => {
      aheadMs = absentMs;
      expect((await plan(["a.md"])).deletions).toEqual([]);
      write("a.md", "saved again");
      const planned = await plan(["a.md"]);
      expect(planned.deletions).toEqual([]);
      expect(titles(planned)).toEqual(["a.md known"]);
    },
  );

  it("a file absent for a moment gives its row to a copy that is seen meanwhile", async () => {
    aheadMs = 600;
    write("copy.md", "text of a.md");
    expect(titles(await plan(["copy.md"]))).toEqual(["copy.md a.md"]);
  });

  it("a file absent for a moment gives its row to a copy that is checked together with it", async () => {
    renameSync(join(root, "b.md"), join(base, "b.md"));
    write("copy.md", "text of b.md");
    expect(titles(await plan(["copy.md", "b.md"]))).toEqual(["copy.md b.md"]);
  });

  it("a file absent for a moment gives its row to a copy that is due before its own delete is", async () => {
    write("copy.md", "text of b.md");
    renameSync(join(root, "b.md"), join(base, "b.md"));
    agenda.checkAgain("b.md", Date.now() + 100);
    expect(titles(await plan(["copy.md"]))).toEqual(["copy.md b.md"]);
  });

  it("a file absent for a moment does not give its row to a new file of the same size with another text", async () => {
    write("new.md", "TEXT OF B.MD");
    renameSync(join(root, "b.md"), join(base, "b.md"));
    agenda.checkAgain("b.md", Date.now() + 100);
    expect(titles(await plan(["new.md"]))).toEqual(["new.md new"]);
  });

  it("a file absent for a moment is deleted when no further file has gone for some time", async () => {
    aheadMs = 3000;
    expect((await plan(["a.md"])).deletions).toMatchObject([{ path: "a.md" }]);
  });
});

describe("files that go while they are being sent", () => {
  const names = Array.from({ length: 12 }, (_, file) => `d/${file}.md`);
  const others = Array.from({ length: 8 }, (_, file) => `${file}.md`);
  /** Begins to send new texts of these. */
  const beginAll = (paths: readonly string[]): Candidate[] => {
    const candidates = paths.map((path) => {
      write(path, "other text");
      return { entry: entryAt(path), known: ledger.files.living(source, path) };
    });
    agenda.queue(candidates);
    return candidates;
  };
  beforeEach(async () => {
    takesMarks = false;
    for (const path of [...names, ...others]) write(path);
    agree([...names, ...others]);
    await planAll();
  });

  it.each(["a hint", "no hint"])(
    "files that disappear in flight are held as one mass, though their jobs end minutes apart and there is %s",
    async (hint) => {
      const candidates = beginAll(names);
      rmSync(join(root, "d"), { recursive: true });
      if (hint === "a hint") await plan(["d"]);
      for (const { entry } of candidates) {
        agenda.end(entry);
        expect((await plan([entry.path])).deletions).toEqual([]);
        aheadMs += 3000;
        expect((await plan([entry.path])).deletions).toEqual([]);
        aheadMs += 60_000;
      }
      ledger.flush();
      expect(ledger.sources.get(source).held).toBe(names.length);
    },
  );

  it("files that were renamed in flight delay no other delete", async () => {
    beginAll(names);
    renameSync(join(root, "d"), join(root, "e"));
    rmSync(join(root, "0.md"));
    await plan(["d", "e", "0.md"]);
    aheadMs += 3000;
    expect((await plan(["0.md"])).deletions).toMatchObject([{ path: "0.md" }]);
  });
});

describe("what a person agrees to", () => {
  const names = Array.from({ length: 40 }, (_, file) => `${file}.md`);
  const rootOf = (): RootIdentity | undefined => {
    ledger.flush();
    return ledger.sources.get(source).root;
  };

  it("an approved folder is not a replaced one whose deletes are held, however often it is checked", async () => {
    for (const name of names) write(name);
    agree(names);
    await planAll();
    const agreed = rootOf();
    renameSync(root, join(base, "away"));
    mkdirSync(root);
    for (const name of names.slice(0, 5)) renameSync(join(base, "away", name), join(root, name));

    expect((await planAll()).deletions).toEqual([]);
    expect(rootOf()).toEqual(agreed);
    await vi.waitUntil(async () => {
      await planAll();
      ledger.flush();
      return ledger.sources.get(source).held === 35;
    });
    await planAll();
    expect(rootOf()).toEqual(agreed);
  });

  it("an approved folder stays approved through partial checks", async () => {
    write("a.md");
    agree(["a.md"]);
    await planAll();
    const identity = rootOf();
    if (identity === undefined) throw new Error("no root");
    ledger.note(() => {
      ledger.sources.setHold(source, {
        halted: "it is another folder",
        reason: null,
        root: identity,
        files: 1,
      });
      ledger.sources.approve(source);
    });
    await plan(["a.md"]);
    ledger.flush();
    expect(ledger.sources.get(source).approved).toBe(true);
    await planAll();
    ledger.flush();
    expect(ledger.sources.get(source).approved).toBe(false);
  });
});

describe("a root that cannot be listed", () => {
  it("a root that cannot be listed halts the source, also for a check of a few paths, until it can be", async () => {
    write("a.md");
    agree(["a.md"]);
    await planAll();
    unlisted.add(root);
    expect((await planAll()).halted).toBe(true);
    ledger.flush();
    expect(ledger.sources.get(source).halted).toBe("the folder cannot be read: EACCES");
    write("b.md");
    expect((await plan(["b.md"])).halted).toBe(true);

    unlisted.clear();
    const back = await plan(["a.md"]);
    expect(titles(back)).toEqual(["b.md new"]);
    expect(back.deletions).toEqual([]);
    ledger.flush();
    expect(ledger.sources.get(source).halted).toBeNull();
  });
});

it("a parked file whose time came while it could not be checked is tried by the next check of the whole source", async () => {
  write("below/a.md");
  await planAll();
  const entry = entryAt("below/a.md");
  const code = "no_answer";
  ledger.note(() => {
    ledger.files.trouble(source, undefined, {
      entry,
      rulesKey,
      state: "parked",
      sure: true,
      code,
      message: "",
    });
  });
  agenda.checkAgain("below/a.md", Date.now() + 60_000);
  expect(titles(await planAll())).toEqual([]);

  unlisted.add(join(root, "below"));
  aheadMs = 60_000;
  expect(agenda.take()?.paths).toEqual(["below/a.md"]);
  expect(titles(await plan(["below"]))).toEqual([]);
  unlisted.clear();
  expect(titles(await planAll())).toEqual(["below/a.md known"]);
});
