import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";

let folder: string;
let ledger: Ledger;
let source: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-source-tree-"));
  ledger = openLedger(folder, "service");
  source = ledger.sources.open("/docs", "owner", "fastest").id;
});
afterEach(() => {
  ledger.abandon();
  rmSync(folder, { recursive: true, force: true });
});

it("a mount below a folder is known until it is removed", async () => {
  const [disk, other] = [
    { dev: 5, ino: 2 },
    { dev: 2 ** 52, ino: 2 },
  ];
  await ledger.write(() => {
    ledger.tree.setMount(source, { path: "a", root: disk });
    ledger.tree.setMount(source, { path: "b", root: disk });
  });
  await ledger.write(() => {
    ledger.tree.setMount(source, { path: "a", root: other });
    ledger.tree.setMount(source, { path: "b", root: undefined });
  });
  expect([...ledger.tree.mounts(source)]).toEqual([["a", other]]);
  expect([...ledger.tree.mounts(source + 1)]).toEqual([]);
});

it("an ignore file in force is known by its hash until it is removed", async () => {
  await ledger.write(() => {
    ledger.tree.setIgnoreFile(source, { file: ".kbsyncignore", hash: "first" });
    ledger.tree.setIgnoreFile(source, { file: "a/.gitignore", hash: "h" });
  });
  await ledger.write(() => {
    ledger.tree.setIgnoreFile(source, { file: ".kbsyncignore", hash: "second" });
    ledger.tree.setIgnoreFile(source, { file: "a/.gitignore", hash: undefined });
  });
  expect([...ledger.tree.ignoreFiles(source)]).toEqual([[".kbsyncignore", "second"]]);
});
