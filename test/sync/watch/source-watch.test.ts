import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Hint } from "../../../src/sync/watch/hints.ts";
import { openFloodGauge } from "../../../src/sync/watch/flood.ts";
import { openSourceWatch, type SourceWatch } from "../../../src/sync/watch/source-watch.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../scan/tree.ts";

const PATIENT = { timeout: 15_000, interval: 5 };

let root: string;
let open: SourceWatch[];
beforeEach(() => {
  root = makeTree({ "a.md": "a", "d/b.md": "b", ".hidden/c.md": "c" });
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map((watch) => watch.close()));
  removeTree(root);
});

/** Number of kernel watches of this process. */
const watches = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === "FSEventWrap").length;
const turns = async (): Promise<void> => {
  for (let count = 0; count < 20; count += 1) await new Promise(setImmediate);
};
const watchIt = async (): Promise<{ watch: SourceWatch; hints: string[]; ready: () => number }> => {
  const hints: string[] = [];
  let ready = 0;
  const onHint = (hint: Hint): void => {
    if (hint.kind === "dirty") hints.push(...(hint.paths ?? ["*"]));
    else ready += Number(hint.kind === "ready");
  };
  const watch = openSourceWatch(sourceAt(root), onHint, openFloodGauge());
  open.push(watch);
  await vi.waitUntil(() => ready === 1, PATIENT);
  return { watch, hints, ready: () => ready };
};

it("releases a watch that is closed during a renewal, without further calls", async () => {
  const before = watches();
  const { watch, hints, ready } = await watchIt();
  expect(watches()).toBeGreaterThan(before);
  appendFileSync(join(root, "a.md"), "more");
  watch.renew();
  watch.renew();
  await watch.close();
  await turns();
  expect([watches(), ready(), hints]).toEqual([before, 1, []]);
});

it("becomes ready again after a renewal, and sees later changes", async () => {
  const { watch, hints, ready } = await watchIt();
  watch.renew();
  await vi.waitUntil(() => ready() === 2, PATIENT);
  await vi.waitFor(() => {
    appendFileSync(join(root, "d/b.md"), "more");
    expect(hints).toContain("d/b.md");
  }, PATIENT);
});

it("sees changes of rules that Git keeps outside of the source's folder", async () => {
  const top = root;
  root = join(top, "d");
  try {
    // A folder that becomes part of a work tree.
    const { hints } = await watchIt();
    const seesRules = async (change: () => void): Promise<void> => {
      hints.length = 0;
      await vi.waitFor(() => {
        // A change during a renewal is found by the scan after it.
        change();
        expect(hints).toContain("*");
      }, PATIENT);
    };
    await seesRules(() => addFiles(top, { ".git/HEAD": "ref: refs/heads/main" }));
    await seesRules(() => addFiles(top, { ".gitignore": "b.md\n" }));
    await seesRules(() => rmSync(join(top, ".gitignore"), { force: true }));
  } finally {
    root = top;
  }
});
