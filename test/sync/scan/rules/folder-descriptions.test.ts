import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type FolderDescriptions,
  openFolderDescriptions,
} from "../../../../src/sync/scan/rules/folder-descriptions.ts";
import { addFiles, makeTree, removeTree } from "../tree.ts";

let root = "";
let nowMs = 0;
beforeEach(() => {
  root = makeTree({ "a/b/c.md": "c" });
  nowMs = 1000;
});
afterEach(() => removeTree(root));

const settling = { settleMs: 100, now: () => nowMs };
const put = (path: string, text: string): void => addFiles(root, { [path]: text });
/** What applies in a folder after the files were read again. */
const lookAgain = (descriptions: FolderDescriptions, folder: string): string | undefined => {
  descriptions.refresh();
  return descriptions.in(folder);
};

describe("descriptions of folders", () => {
  it("descriptions of folders are inherited, the outermost first", () => {
    put(".kbsync.md", "\uFEFFAll.\n");
    put("a/b/.kbsync.md", "Deep.");
    const descriptions = openFolderDescriptions(root);
    expect(["", "a", "a/b"].map((folder) => descriptions.in(folder))).toEqual([
      "All.",
      "All.",
      "All.\n\nDeep.",
    ]);
  });

  it.each([
    ["empty", ""],
    ["blank", " \n"],
    ["too large", "x".repeat(64 * 1024 + 1)],
  ])("descriptions of folders are none in a file that is %s", (_, text) => {
    put("a/.kbsync.md", text);
    expect(openFolderDescriptions(root).in("a")).toBeUndefined();
  });

  it("descriptions of folders are read again only after a refresh", () => {
    const descriptions = openFolderDescriptions(root);
    expect(descriptions.in("a")).toBeUndefined();
    put("a/.kbsync.md", "New.");
    expect(descriptions.in("a")).toBeUndefined();
    expect(lookAgain(descriptions, "a")).toBe("New.");
  });
});

describe("a changed description", () => {
  it("a changed description comes into force once it has been unchanged for the settle time, and the former one applies until then", () => {
    put("a/.kbsync.md", "One.");
    const descriptions = openFolderDescriptions(root, settling);
    expect(descriptions.in("a")).toBe("One.");
    expect(descriptions.takeRest()).toBeUndefined();
    put("a/.kbsync.md", "Tw");
    expect(lookAgain(descriptions, "a")).toBe("One.");
    expect(descriptions.takeRest()).toEqual({ atMs: 1100, isOverdue: false });
    nowMs = 1050;
    put("a/.kbsync.md", "Two.");
    expect(lookAgain(descriptions, "a")).toBe("One.");
    expect(descriptions.takeRest()).toEqual({ atMs: 1150, isOverdue: false });
    nowMs = 1150;
    expect(lookAgain(descriptions, "a")).toBe("Two.");
    expect(descriptions.takeRest()).toBeUndefined();
  });

  it("a changed description that is removed for a moment, as by a program that rewrites it, changes nothing", () => {
    put("a/.kbsync.md", "One.");
    const descriptions = openFolderDescriptions(root, settling);
    descriptions.in("a");
    rmSync(join(root, "a/.kbsync.md"));
    expect(lookAgain(descriptions, "a")).toBe("One.");
    put("a/.kbsync.md", "One.");
    nowMs = 5000;
    expect(lookAgain(descriptions, "a")).toBe("One.");
  });

  it("a changed description that keeps changing for a minute is waited for no longer", () => {
    put("a/.kbsync.md", "0");
    const descriptions = openFolderDescriptions(root, settling);
    descriptions.in("a");
    for (let text = 1; nowMs < 62_000; text += 1, nowMs += 50) {
      writeFileSync(join(root, "a/.kbsync.md"), String(text));
      lookAgain(descriptions, "a");
    }
    expect(descriptions.takeRest()?.isOverdue).toBe(false);
    nowMs += 1;
    writeFileSync(join(root, "a/.kbsync.md"), "last");
    lookAgain(descriptions, "a");
    expect(descriptions.takeRest()?.isOverdue).toBe(true);
  });
});
