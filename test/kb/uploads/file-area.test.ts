import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
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
const store = async (token: string): Promise<void> => {
  await receive(token, "words");
  await area.keep(token);
};

it("accepts a file of exactly the largest size, and leaves nothing of a larger one", async () => {
  await receive("fits", "x".repeat(100));
  await expect(receive("longer", "x".repeat(101))).rejects.toThrow("too large");
  expect(await readdir(join(folder, "incoming"))).toEqual(["fits"]);
});

it("removes a file once when two callers ask, and reports false to the second", async () => {
  await store("one");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const first = area.remove("one", () => promise);
  expect(await area.remove("one", async () => true)).toBe(false);
  resolve(true);
  expect(await first).toBe(true);
  expect(await area.holds("one")).toBe(false);
  expect(await readdir(join(folder, "incoming"))).toEqual([]);
});

it("restores a file whose row stays", async () => {
  await store("one");
  expect(await area.remove("one", async () => false)).toBe(false);
  expect(await readFile(area.path("one"), "utf8")).toBe("words");
  // A later removal succeeds.
  expect(await area.remove("one", async () => true)).toBe(true);
});

it("does not remove a file before the last work that uses it ends", async () => {
  await store("one");
  const [a, b] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const uses = [a, b].map(({ promise }) => area.use("one", () => promise));
  a.resolve();
  await uses[0];
  expect(await area.remove("one", async () => true)).toBe(false);
  b.resolve();
  await uses[1];
  expect(await area.remove("one", async () => true)).toBe(true);
});

it("makes work wait for a removal, and then see its result", async () => {
  await store("one");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const removal = area.remove("one", () => promise);
  const seen = area.use("one", () => area.holds("one"));
  resolve(true);
  await removal;
  expect(await seen).toBe(false);
});

it("recovers recorded files after a crash, and removes the rest", async () => {
  await receive("recorded", "words");
  await receive("other", "words");
  const again = await openFileArea(folder);
  expect(await again.recover(async (token) => token === "recorded")).toBe(2);
  expect([await again.holds("recorded"), await again.holds("other")]).toEqual([true, false]);
  expect(await readdir(join(folder, "incoming"))).toEqual([]);
});

it("knows whether it holds a file, and does not take a failure for an absence", async () => {
  await store("one");
  expect([await area.holds("one"), await area.holds("other")]).toEqual([true, false]);
  await expect(area.holds("x".repeat(300))).rejects.toMatchObject({ code: "ENAMETOOLONG" });
});

it("writes what it receives in full, readable by its owner alone, and says its size and digest", async () => {
  const parts = [Buffer.alloc(300_000, "a"), Buffer.alloc(0), Buffer.from("end")];
  const received = await area.receive("one", Readable.from(parts), 1_000_000, () => new Error("too large"));
  const bytes = Buffer.concat(parts);
  expect(received).toEqual({
    token: "one",
    path: join(folder, "incoming", "one"),
    sizeBytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  });
  expect((await readFile(received.path)).equals(bytes)).toBe(true);
  const modes = await Promise.all([received.path, join(folder, "incoming")].map((path) => stat(path)));
  expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700]);
});

it("replaces no file that it has, and leaves nothing of a stream that breaks off", async () => {
  await receive("one", "first");
  await expect(receive("one", "second")).rejects.toMatchObject({ code: "EEXIST" });
  expect(await readFile(join(folder, "incoming", "one"), "utf8")).toBe("first");
  const broken = Readable.from(
    (function* () {
      yield Buffer.from("half");
      throw new Error("gone");
    })(),
  );
  await expect(area.receive("two", broken, 100, () => new Error("too large"))).rejects.toThrow("gone");
  expect(await readdir(join(folder, "incoming"))).toEqual(["one"]);
});

it("removes a file after a removal that failed, and forgets the row of one that is gone", async () => {
  await store("one");
  await expect(area.remove("one", () => Promise.reject(new Error("busy")))).rejects.toThrow("busy");
  expect(await area.recover(async () => true)).toBe(1);
  expect(await area.remove("one", async () => true)).toBe(true);
  expect(await area.remove("never", async () => true)).toBe(true);
});

it("discards a received file, and nothing that has moved", async () => {
  await receive("one", "words");
  await area.discard("one");
  await store("two");
  await area.discard("two");
  await area.discard("never");
  expect([await readdir(join(folder, "incoming")), await area.holds("two")]).toEqual([[], true]);
});
