import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type FolderDescriptions,
  openFolderDescriptions,
} from "../../../../src/sync/scan/rules/folder-descriptions.ts";
import { addFiles, makeTree, removeTree } from "../tree.ts";

let root = "";
beforeEach(() => {
  root = makeTree({ "a/b/c.md": "c" });
});
afterEach(() => removeTree(root));

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
