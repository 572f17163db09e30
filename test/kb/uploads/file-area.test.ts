import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openFileArea, type FileArea } from "../../../src/kb/uploads/file-area.ts";

let folder: string;
let area: FileArea;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-files-"));
  area = await openFileArea(folder);
});
afterEach(() => rm(folder, { recursive: true }));

const receive = (token: string, text: string, bytesMax = 100): Promise<unknown> =>
  area.receive(token, Readable.from([Buffer.from(text)]), bytesMax, () => new Error("too large"));
const kept = async (token: string): Promise<void> => {
  await receive(token, "words");
  await area.keep(token);
};

it("takes a file of exactly the longest length, and leaves nothing of a longer one", async () => {
  await receive("fits", "x".repeat(100));
  await expect(receive("longer", "x".repeat(101))).rejects.toThrow("too large");
  expect(await readdir(join(folder, "incoming"))).toEqual(["fits"]);
});

it("removes a file that two ask to be removed once, and answers the second one that it did not", async () => {
  await kept("one");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const first = area.remove("one", () => promise);
  expect(await area.remove("one", async () => true)).toBe(false);
  resolve(true);
  expect(await first).toBe(true);
  expect(await area.holds("one")).toBe(false);
  expect(await readdir(join(folder, "incoming"))).toEqual([]);
});

it("puts a file back whose row stays", async () => {
  await kept("one");
  expect(await area.remove("one", async () => false)).toBe(false);
  expect(await readFile(area.path("one"), "utf8")).toBe("words");
  // It may be removed later.
  expect(await area.remove("one", async () => true)).toBe(true);
});

it("keeps a file until the last work that uses it is over", async () => {
  await kept("one");
  const [a, b] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const uses = [a, b].map(({ promise }) => area.use("one", () => promise));
  a.resolve();
  await uses[0];
  expect(await area.remove("one", async () => true)).toBe(false);
  b.resolve();
  await uses[1];
  expect(await area.remove("one", async () => true)).toBe(true);
});

it("lets work wait for a removal, and see what came of it", async () => {
  await kept("one");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const removal = area.remove("one", () => promise);
  const seen = area.use("one", () => area.holds("one"));
  resolve(true);
  await removal;
  expect(await seen).toBe(false);
});

it("finds after a crash what was noted, and removes the rest", async () => {
  await receive("noted", "words");
  await receive("other", "words");
  const again = await openFileArea(folder);
  expect(await again.recover(async (token) => token === "noted")).toBe(2);
  expect([await again.holds("noted"), await again.holds("other")]).toEqual([true, false]);
  expect(await readdir(join(folder, "incoming"))).toEqual([]);
});
