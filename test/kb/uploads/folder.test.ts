import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openFolder } from "../../../src/kb/uploads/folder.ts";
import { bytesOf, fileStoreContract, put } from "./file-store-contract.ts";

const makeFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "kbsync-files-"));
const namesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(folder);
  return [...names.filter((name) => name !== "incoming"), ...(await readdir(join(folder, "incoming")))];
};

fileStoreContract("a folder", async () => {
  const folder = await makeFolder();
  return {
    open: (aheadMs = 0) => openFolder({ folder, isShared: true, nowMs: () => Date.now() + aheadMs }),
    names: () => namesIn(folder),
    close: () => rm(folder, { recursive: true }),
  };
});

let folder: string;
beforeEach(async () => {
  folder = await makeFolder();
});
afterEach(() => rm(folder, { recursive: true }));
const tooLarge = (): Error => new Error("too large");

it("removes at the next start what a crash left in a folder of one process, however young", async () => {
  const store = await openFolder({ folder });
  await store.receive("recorded", bytesOf("words"), 100, tooLarge);
  await store.receive("other", bytesOf("words"), 100, tooLarge);
  const again = await openFolder({ folder });
  expect(await again.recover(async (token) => token === "recorded")).toBe(2);
  expect(await namesIn(folder)).toEqual(["recorded"]);
});

it("a folder of uploads does not remove what its own process works on", async () => {
  const store = await openFolder({ folder });
  await store.receive("one", bytesOf("words"), 100, tooLarge);
  expect(await store.recover(async () => false)).toBe(0);
  expect(await namesIn(folder)).toEqual(["one"]);
  await store.discard("one");
  await store.receive("two", bytesOf("words"), 100, tooLarge);
  store.abandon("two");
  expect(await store.recover(async () => false)).toBe(1);
});

it("lets only its user read what it stores", async () => {
  const store = await openFolder({ folder });
  await put(store, "one");
  const modes = await Promise.all([join(folder, "one"), join(folder, "incoming")].map((path) => stat(path)));
  expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700]);
});

it("does not take a failure for an absence", async () => {
  const store = await openFolder({ folder });
  await expect(store.holds("x".repeat(300))).rejects.toMatchObject({ code: "ENAMETOOLONG" });
});
