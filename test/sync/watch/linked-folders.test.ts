import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { codeOf } from "../../../src/lib/failure.ts";
import { type LinkedFolders, openLinkedFolders } from "../../../src/sync/watch/linked-folders.ts";
import { makeTree, removeTree } from "../scan/tree.ts";

const PATIENT = { timeout: 10_000, interval: 5 };

let root = "";
let folders: LinkedFolders;
let events: string[] = [];
let errors: (string | undefined)[] = [];
beforeEach(() => {
  root = makeTree({ "a/b.md": "b", "file.md": "file" });
  events = [];
  errors = [];
  folders = openLinkedFolders(
    (path) => events.push(path),
    (error) => errors.push(codeOf(error)),
  );
});
afterEach(() => {
  folders.close();
  removeTree(root);
});
const at = (path: string): string => join(root, path);
const sees = (path: string): Promise<unknown> => vi.waitUntil(() => events.includes(at(path)), PATIENT);

it("reports no error for a missing folder, and one for an unwatchable folder", () => {
  symlinkSync("ring", at("ring"));
  folders.set(new Set([at("missing"), at("file.md/below")]));
  expect(errors).toEqual([]);
  folders.set(new Set([at("ring")]));
  expect(errors).toEqual(["ELOOP"]);
});

it("watches the given folders, and none that were given before", async () => {
  mkdirSync(at("c"));
  folders.set(new Set([at("a")]));
  expect(events).toEqual([at("a")]);
  folders.set(new Set([at("c")]));
  events = [];
  writeFileSync(at("a/old.md"), "old");
  writeFileSync(at("c/new.md"), "new");
  await sees("c/new.md");
  expect(events).not.toContain(at("a/old.md"));
});

it("watches a folder again when it or a folder above was replaced", async () => {
  mkdirSync(at("a/in"));
  folders.set(new Set([at("a/in")]));
  renameSync(at("a"), at("away"));
  mkdirSync(at("a/in"), { recursive: true });
  events = [];
  folders.replaced(at("a"));
  expect(events).toEqual([at("a/in")]);
  writeFileSync(at("a/in/x.md"), "x");
  await sees("a/in/x.md");
  // A name that only starts with the same characters is another folder.
  events = [];
  folders.replaced(at("a/i"));
  expect(events).toEqual([]);
});
