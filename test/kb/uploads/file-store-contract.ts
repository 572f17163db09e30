import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LEFTOVER_MS, type FileKey, type FileStore } from "../../../src/kb/uploads/file-store.ts";

/** A storage for files that several processes use. */
export interface Storage {
  /** Opens the storage as another process does. Its clock is `aheadMs` ahead. */
  open(aheadMs?: number): Promise<FileStore>;
  /** Names of all that the storage holds for all processes: files, and the marks of what is in flight. */
  names(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export const bytesOf = (text: string): Readable => Readable.from([Buffer.from(text)]);
const tooLarge = (): Error => new Error("too large");

/** The key of a file with this text. */
export const keyOf = (token: string, text: string): FileKey => ({
  token,
  sizeBytes: Buffer.byteLength(text),
  sha256: createHash("sha256").update(text).digest("hex"),
});

/** Stores a file as an upload does. */
export async function put(store: FileStore, token: string, text = "words"): Promise<FileKey> {
  await store.receive(token, bytesOf(text), 1000, tooLarge);
  await store.save(token);
  await store.publish(token);
  return keyOf(token, text);
}

export const readText = (store: FileStore, file: FileKey): Promise<string> =>
  store.use(file, (path) => readFile(path, "utf8"));

/** The contract suite of the port `FileStore`, for every implementation. */
export function fileStoreContract(name: string, openStorage: () => Promise<Storage>): void {
  describe(`${name}: the contract of a file store`, () => {
    let storage: Storage;
    let store: FileStore;
    beforeEach(async () => {
      storage = await openStorage();
      store = await storage.open();
    });
    afterEach(() => storage.close());

    /** Opens the storage a day later, when nothing of today is in flight. */
    const tomorrow = (): Promise<FileStore> => storage.open(LEFTOVER_MS + 1000);

    describe("a received file", () => {
      it("a received file has the size and the digest of all its bytes", async () => {
        const parts = [Buffer.alloc(300_000, "a"), Buffer.alloc(0), Buffer.from("end")];
        const received = await store.receive("one", Readable.from(parts), 300_003, tooLarge);
        const bytes = Buffer.concat(parts);
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        expect(received).toMatchObject({ token: "one", sizeBytes: 300_003, sha256 });
        expect((await readFile(received.path)).equals(bytes)).toBe(true);
      });

      it("leaves nothing if it is too large, or its stream breaks off", async () => {
        await expect(store.receive("one", bytesOf("x".repeat(101)), 100, tooLarge)).rejects.toThrow("too");
        const broken = Readable.from(
          (function* () {
            yield Buffer.from("half");
            throw new Error("gone");
          })(),
        );
        await expect(store.receive("one", broken, 100, tooLarge)).rejects.toThrow("gone");
        expect(await storage.names()).toEqual([]);
        await put(store, "one");
      });

      it("replaces no file under the same token", async () => {
        const { path } = await store.receive("one", bytesOf("first"), 100, tooLarge);
        const second = store.receive("one", bytesOf("second"), 100, tooLarge);
        await expect(second).rejects.toMatchObject({ code: "EEXIST" });
        expect(await readFile(path, "utf8")).toBe("first");
      });

      it("a received file is gone once it is discarded, which does nothing to a published file", async () => {
        await store.receive("one", bytesOf("words"), 100, tooLarge);
        await store.discard("one");
        await put(store, "two");
        await store.discard("two");
        await store.discard("never");
        expect(await storage.names()).toEqual(["two"]);
      });
    });

    describe("a published file", () => {
      it("a published file is read by every process", async () => {
        const file = await put(store, "one");
        const other = await storage.open();
        expect(await readText(store, file)).toBe("words");
        expect(await readText(other, file)).toBe("words");
        expect([await other.holds("one"), await other.holds("two")]).toEqual([true, false]);
      });

      it("a published file may be empty", async () => {
        const file = await put(store, "one", "");
        const other = await storage.open();
        expect([await other.holds("one"), await readText(other, file)]).toEqual([true, ""]);
      });

      it("a published file may be published again, by any process", async () => {
        const file = await put(store, "one");
        await store.publish("one");
        const other = await storage.open();
        await other.publish("one");
        expect(await readText(other, file)).toBe("words");
        await expect(other.publish("never")).rejects.toMatchObject({ code: "ENOENT" });
      });

      it("a published file fails with ENOENT once it is gone", async () => {
        const file = await put(store, "one");
        await store.remove("one", async () => true);
        await expect(readText(store, file)).rejects.toMatchObject({ code: "ENOENT" });
      });
    });

    describe("a removal", () => {
      it("removes a file once when two callers ask, and reports false to the second", async () => {
        await put(store, "one");
        const { promise, resolve } = Promise.withResolvers<boolean>();
        const first = store.remove("one", () => promise);
        expect(await store.remove("one", async () => true)).toBe(false);
        resolve(true);
        expect(await first).toBe(true);
        expect(await store.holds("one")).toBe(false);
        expect(await storage.names()).toEqual([]);
      });

      it("lets every process read the file until its row is gone, and leaves it if the row stays", async () => {
        const file = await put(store, "one");
        const other = await storage.open();
        const seen: string[] = [];
        const removed = await store.remove("one", async () => {
          seen.push(await readText(other, file));
          return false;
        });
        expect([removed, ...seen, await readText(store, file)]).toEqual([false, "words", "words"]);
        expect(await storage.names()).toEqual(["one"]);
        expect(await store.remove("one", async () => true)).toBe(true);
      });

      it("a removal does not remove a file before the last work that holds it ends", async () => {
        const file = await put(store, "one");
        const [a, b] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const uses = [store.hold("one", () => a.promise), store.use(file, () => b.promise)];
        a.resolve();
        await uses[0];
        expect(await store.remove("one", async () => true)).toBe(false);
        b.resolve();
        await uses[1];
        expect(await store.remove("one", async () => true)).toBe(true);
      });

      it("makes work wait for it, and then see its result", async () => {
        await put(store, "one");
        const { promise, resolve } = Promise.withResolvers<boolean>();
        const removal = store.remove("one", () => promise);
        const seen = store.hold("one", () => store.holds("one"));
        resolve(true);
        await removal;
        expect(await seen).toBe(false);
      });

      it("a removal can be repeated after it failed, and forgets the row of a file that is gone", async () => {
        const file = await put(store, "one");
        await expect(store.remove("one", () => Promise.reject(new Error("busy")))).rejects.toThrow("busy");
        expect(await readText(store, file)).toBe("words");
        expect(await store.remove("one", async () => true)).toBe(true);
        expect(await store.remove("never", async () => true)).toBe(true);
        expect(await storage.names()).toEqual([]);
      });
    });

    describe("recovery", () => {
      it("removes a file whose removal ended between row and bytes, and no file whose row is there", async () => {
        const file = await put(store, "stays");
        await put(store, "goes");
        for (const token of ["stays", "goes"])
          await expect(store.remove(token, () => Promise.reject(new Error("crash")))).rejects.toThrow(
            "crash",
          );
        const later = await tomorrow();
        expect(await later.recover(async (token) => token === "stays")).toBe(2);
        expect(await storage.names()).toEqual(["stays"]);
        expect(await readText(later, file)).toBe("words");
        expect(await later.recover(async () => true)).toBe(0);
      });

      it("publishes files that were recorded, and removes those that were not", async () => {
        for (const token of ["recorded", "other"]) {
          await store.receive(token, bytesOf("words"), 100, tooLarge);
          await store.save(token);
        }
        const later = await tomorrow();
        expect(await later.recover(async (token) => token === "recorded")).toBe(2);
        expect(await storage.names()).toEqual(["recorded"]);
        expect(await readText(later, keyOf("recorded", "words"))).toBe("words");
      });

      it("recovery does not touch what another process works on", async () => {
        await store.receive("received", bytesOf("words"), 100, tooLarge);
        await store.receive("saved", bytesOf("words"), 100, tooLarge);
        await store.save("saved");
        await put(store, "removed");
        const other = await storage.open();
        await store.remove("removed", async () => {
          await other.recover(async () => false);
          return false;
        });
        await store.save("received");
        await store.publish("received");
        await store.publish("saved");
        for (const token of ["received", "saved", "removed"])
          expect(await readText(store, keyOf(token, "words"))).toBe("words");
      });

      it("publishes a recorded file while the process that received it does, too", async () => {
        await store.receive("one", bytesOf("words"), 100, tooLarge);
        await store.save("one");
        const other = await storage.open();
        await other.recover(async () => true);
        await store.publish("one");
        expect(await readText(store, keyOf("one", "words"))).toBe("words");
        expect(await (await tomorrow()).recover(async () => true)).toBe(0);
      });

      it("settles a file that was abandoned or discarded after it was saved", async () => {
        for (const token of ["recorded", "abandoned", "discarded"]) {
          await store.receive(token, bytesOf("words"), 100, tooLarge);
          await store.save(token);
        }
        store.abandon("recorded");
        store.abandon("abandoned");
        await store.discard("discarded");
        const later = await tomorrow();
        await later.recover(async (token) => token === "recorded");
        expect(await storage.names()).toEqual(["recorded"]);
        expect(await readText(later, keyOf("recorded", "words"))).toBe("words");
      });
    });
  });
}
