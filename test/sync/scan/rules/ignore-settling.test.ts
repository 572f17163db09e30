import { renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TIMING } from "../../../../src/sync/plan/timing.ts";
import { openRules, type Rules } from "../../../../src/sync/scan/rules/rules.ts";
import { scanSource } from "../../../../src/sync/scan/scan.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../tree.ts";

const SETTLE_MS = 150;

let root = "";
let nowMs = 0;
beforeEach(() => {
  root = makeTree({ "open.md": "open", "secret/a.md": "secret", "d/b.md": "b", "d/secret/c.md": "secret" });
  nowMs = 1_000_000;
});
afterEach(() => {
  vi.useRealTimers();
  removeTree(root);
});

function open(inForce: ReadonlyMap<string, string> = new Map(), settleMs = SETTLE_MS): Rules {
  return openRules(sourceAt(root), {
    ignoreFiles: { settleMs, now: () => nowMs, inForce },
    mounts: { known: new Map(), hasFiles: () => false },
  });
}

const put = (path: string, text: string): void => writeFileSync(join(root, path), text);

/** The files that a scan would have sent, sorted. */
async function seen(rules: Rules): Promise<string[]> {
  const { entries } = await scanSource(root, rules);
  return entries.map(({ path }) => path).sort();
}

/** Rules whose ignore files are in force. */
async function settled(files: Record<string, string>): Promise<Rules> {
  addFiles(root, files);
  const rules = open();
  for (let rest; await seen(rules), (rest = rules.takeIgnoreRest()) !== undefined;) nowMs = rest.atMs;
  return rules;
}

const EVERYTHING = ["d/b.md", "d/secret/c.md", "open.md", "secret/a.md"];

describe("an ignore file that changes", () => {
  it("lets nothing through while an ignore file is rewritten in steps", async () => {
    const rules = await settled({ ".kbsyncignore": "secret/\n" });
    for (const text of ["", "# header\n", "# header\n# secret/", "# header\nsecret/\n"]) {
      put(".kbsyncignore", text);
      nowMs += TIMING.changedRulesMs - 1;
      expect(await seen(rules)).toEqual([]);
    }
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
  });

  it("applies a new ignore file after the settle time", async () => {
    const rules = await settled({});
    put(".kbsyncignore", "secret/\n");
    expect(await seen(rules)).toEqual([]);
    expect(rules.takeIgnoreRest()).toEqual({ atMs: nowMs + SETTLE_MS, isOverdue: false });
    nowMs += SETTLE_MS;
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
    expect(rules.takeIgnoreRest()).toBeUndefined();
  });

  const changes: [what: string, text: string | undefined][] = [
    ["it gained a pattern", "secret/\n!x\nb.md\n"],
    ["it lost a pattern", "other/\n"],
    ["it was emptied", ""],
    ["it has comments alone", "# secret/\n"],
    ["it is missing", undefined],
  ];
  it.each(changes)("applies a changed ignore file after a longer time when %s", async (_, text) => {
    const rules = await settled({ ".kbsyncignore": "secret/\n!x\n" });
    if (text === undefined) rmSync(join(root, ".kbsyncignore"));
    else put(".kbsyncignore", text);
    expect(await seen(rules)).toEqual([]);
    nowMs += TIMING.changedRulesMs - 1;
    expect(await seen(rules)).toEqual([]);
    nowMs += 1;
    expect(await seen(rules)).toContain("open.md");
  });

  it("restarts the settle time of an ignore file with every touch, whatever its modification time", async () => {
    const rules = await settled({ ".kbsyncignore": "secret/\n" });
    put(".kbsyncignore", "open.md\n");
    await seen(rules);
    for (let n = 1; n <= 3; n++) {
      nowMs += TIMING.changedRulesMs - 1;
      utimesSync(join(root, ".kbsyncignore"), n, n);
      expect(await seen(rules)).toEqual([]);
    }
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(["d/b.md", "d/secret/c.md", "secret/a.md"]);
  });

  it("does not undo an ignore file at once by a version that never applied", async () => {
    const rules = await settled({});
    put(".kbsyncignore", "secret/\n");
    expect(await seen(rules)).toEqual([]);
    rmSync(join(root, ".kbsyncignore"));
    expect(await seen(rules)).toEqual([]);
    nowMs += TIMING.changedRulesMs - 1;
    expect(await seen(rules)).toEqual([]);
    nowMs += 1;
    expect(await seen(rules)).toEqual(EVERYTHING);
  });

  it("keeps an ignore file in force when it is touched with equal patterns", async () => {
    const rules = await settled({ ".kbsyncignore": "secret/\n" });
    put(".kbsyncignore", "# why\nsecret/\n\n");
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
    expect(rules.takeIgnoreRest()).toBeUndefined();
  });

  it("detects a changed ignore file of equal size and times where times are coarse", async () => {
    const rules = await settled({ ".kbsyncignore": "secret/\n" });
    const path = join(root, ".kbsyncignore");
    put(".kbsyncignore", "secret/\n#1\n");
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
    put(".kbsyncignore", "secreT/\n#1\n");
    utimesSync(path, 1, 1);
    expect(await seen(rules)).toEqual([]);
  });

  it("delays only the folder of a nested ignore file", async () => {
    const rules = await settled({ "d/.kbsyncignore": "secret/\n" });
    renameSync(join(root, "d/.kbsyncignore"), join(root, "d/.kbsyncignore.bak"));
    expect(await seen(rules)).toEqual(["open.md", "secret/a.md"]);
    renameSync(join(root, "d/.kbsyncignore.bak"), join(root, "d/.kbsyncignore"));
    await seen(rules);
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(["d/b.md", "open.md", "secret/a.md"]);
  });

  it("waits for the ignore file of a folder that returns without it", async () => {
    const rules = await settled({ "d/.kbsyncignore": "secret/\n" });
    renameSync(join(root, "d"), join(root, ".away"));
    expect(await seen(rules)).toEqual(["open.md", "secret/a.md"]);
    expect(rules.takeIgnoreRest()).toBeUndefined();
    rmSync(join(root, ".away/.kbsyncignore"));
    renameSync(join(root, ".away"), join(root, "d"));
    expect(await seen(rules)).toEqual(["open.md", "secret/a.md"]);
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(EVERYTHING);
  });

  it("reports an ignore file that has been changing for a minute", async () => {
    const rules = await settled({ ".kbsyncignore": "secret/\n" });
    for (let n = 0; n < 60; n++) {
      put(".kbsyncignore", `x${n}\n`);
      expect((await scanSource(root, rules)).unreadable).toMatchObject([{ path: "", code: "UNSETTLED" }]);
      expect(rules.takeIgnoreRest()?.isOverdue).toBe(false);
      nowMs += 1000;
    }
    put(".kbsyncignore", "y\n");
    expect((await scanSource(root, rules)).unreadable).toMatchObject([{ path: "", code: "EBUSY" }]);
    expect(rules.takeIgnoreRest()?.isOverdue).toBe(true);
  });

  it("applies an ignore file at once without a settle time", async () => {
    addFiles(root, { ".kbsyncignore": "secret/\n" });
    const rules = open(new Map(), 0);
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
    rmSync(join(root, ".kbsyncignore"));
    expect(await seen(rules)).toEqual(EVERYTHING);
  });
});

describe("at a start", () => {
  const inForceAfter = async (files: Record<string, string>): Promise<Map<string, string>> => {
    const rules = await settled(files);
    // What was taken is recorded once.
    const taken = rules.takeSettled(true);
    expect(rules.takeSettled(true)).toEqual([]);
    return new Map(taken.flatMap(({ file, hash }) => (hash ? [[file, hash]] : [])));
  };

  it("applies a different ignore file at once if nobody has touched it for a minute", async () => {
    const inForce = await inForceAfter({ ".kbsyncignore": "secret/\n" });
    put(".kbsyncignore", "open.md\n");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    const rules = open(inForce);
    expect(await seen(rules)).toEqual(["d/b.md", "d/secret/c.md", "secret/a.md"]);
    expect(rules.takeIgnoreRest()).toBeUndefined();
  });

  it("applies an unchanged ignore file at once after a start", async () => {
    const inForce = await inForceAfter({ ".kbsyncignore": "secret/\n", "d/.kbsyncignore": "b.md\n" });
    const rules = open(inForce);
    expect(await seen(rules)).toEqual(["open.md"]);
    expect(rules.takeSettled(true)).toEqual([]);
  });

  it("waits for a missing or different ignore file after a start", async () => {
    const inForce = await inForceAfter({ ".kbsyncignore": "secret/\n", "d/.kbsyncignore": "b.md\n" });
    put(".kbsyncignore", "# secret/\n");
    expect(await seen(open(inForce))).toEqual([]);
    put(".kbsyncignore", "secret/\n");
    rmSync(join(root, "d/.kbsyncignore"));
    const rules = open(inForce);
    expect(await seen(rules)).toEqual(["open.md"]);
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
    expect(rules.takeSettled(true)).toEqual([{ file: "d/.kbsyncignore", hash: undefined }]);
  });

  it("waits for a recently touched ignore file without patterns after a start, because the rest may follow", async () => {
    put(".kbsyncignore", "# header\n");
    const rules = open();
    expect(await seen(rules)).toEqual([]);
    expect(rules.takeIgnoreRest()).toEqual({ atMs: nowMs + TIMING.changedRulesMs, isOverdue: false });
    put(".kbsyncignore", "# header\nsecret/\n");
    expect(await seen(rules)).toEqual([]);
    nowMs += TIMING.changedRulesMs;
    expect(await seen(rules)).toEqual(["d/b.md", "open.md"]);
  });

  it("settles a new ignore file first, and removes rules of a folder that is gone", async () => {
    const inForce = await inForceAfter({ "d/.kbsyncignore": "b.md\n" });
    rmSync(join(root, "d"), { recursive: true });
    put(".kbsyncignore", "secret/\n");
    const rules = open(inForce);
    expect(await seen(rules)).toEqual([]);
    nowMs += SETTLE_MS;
    expect(await seen(rules)).toEqual(["open.md"]);
    expect(rules.takeSettled(true)).toContainEqual({ file: "d/.kbsyncignore", hash: undefined });
  });
});

it("law: lets through only what a settled version lets through, however the file changes", async () => {
  const patternsOf = (version = ""): string => version.replaceAll("# h\n", "");
  const text = fc.option(fc.constantFrom("", "# h\n", "secret/\n", "# h\nsecret/\n", "x\nsecret/\n", "x\n"), {
    nil: undefined,
  });
  const steps = fc.array(fc.record({ text, waitMs: fc.integer({ min: 0, max: 8000 }) }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      rmSync(join(root, ".kbsyncignore"), { force: true });
      const rules = await settled({ ".kbsyncignore": "secret/\n" });
      let changedMs = -Infinity;
      let wasOpen = false;
      let decided = "secret/\n";
      let last: string | undefined = "secret/\n";
      for (const step of history) {
        if (patternsOf(step.text) !== patternsOf(last)) changedMs = nowMs;
        last = step.text;
        if (last === undefined) rmSync(join(root, ".kbsyncignore"), { force: true });
        else put(".kbsyncignore", last);
        for (const waitMs of [0, step.waitMs]) {
          nowMs += waitMs;
          const files = await seen(rules);
          if (files.length === 0) continue; // undecided
          const isOpen = files.includes("secret/a.md");
          const isAsBefore = !isOpen || (wasOpen && patternsOf(last) === decided);
          const restMs = wasOpen ? SETTLE_MS : TIMING.changedRulesMs;
          expect(isAsBefore || nowMs - changedMs >= restMs).toBe(true);
          decided = patternsOf(last);
          expect(isOpen).toBe(!patternsOf(last).includes("secret/"));
          wasOpen = isOpen;
        }
      }
    }),
    { numRuns: 60 },
  );
});
