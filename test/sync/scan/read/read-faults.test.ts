import { fs as memory, vol } from "memfs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { readDocument } from "../../../../src/sync/scan/read/read.ts";
import type { ReadOutcome } from "../../../../src/sync/scan/read/outcome.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { sourceAt } from "../tree.ts";

/** Called by the next read; set by a test. */
const during = vi.hoisted(() => ({ read: (): void => undefined, open: (): void => undefined }));

vi.mock("node:fs", () => ({
  ...memory,
  openSync: (...args: Parameters<typeof memory.openSync>) => {
    during.open();
    return memory.openSync(...args);
  },
  readSync: (...args: Parameters<typeof memory.readSync>) => {
    during.read();
    return memory.readSync(...args);
  },
}));
vi.mock("node:fs/promises", () => memory.promises);

function fail(code: string): never {
  throw Object.assign(new Error(code), { code, syscall: "test" });
}

async function readSmall(): Promise<ReadOutcome> {
  const entry = { path: "a.md", sizeBytes: 5, mtimeMs: 0, ctimeMs: 0, ino: 1 };
  return await readDocument("/r/a.md", entry, openRules(sourceAt("/r")));
}

beforeEach(() => {
  during.read = () => undefined;
  during.open = () => undefined;
  vol.reset();
  vol.fromJSON({ "/r/a.md": "alpha" });
});

describe("a small file that does not keep still", () => {
  it("reads a small file that does not change", async () => {
    expect(await readSmall()).toMatchObject({ kind: "document", document: { content: "alpha" } });
  });

  it("reports a small file as torn that shrinks, grows or is written in place", async () => {
    for (const text of ["al", "alphabet", "ALPHA"]) {
      vol.fromJSON({ "/r/a.md": "alpha" });
      const later = new Date(Date.now() + 1000);
      during.read = () => {
        memory.writeFileSync("/r/a.md", text);
        memory.utimesSync("/r/a.md", later, later);
      };
      expect(await readSmall()).toEqual({ kind: "torn" });
    }
  });

  it.each(["EACCES", "EIO", "EMFILE"])(
    "reports a small file as unreadable with the code %s",
    async (code) => {
      during.open = () => fail(code);
      expect(await readSmall()).toEqual({ kind: "unreadable", code });
      during.open = () => undefined;
      during.read = () => fail(code);
      expect(await readSmall()).toEqual({ kind: "unreadable", code });
    },
  );

  it("does not hide a programming error", async () => {
    during.read = () => {
      throw new TypeError("mistake");
    };
    await expect(readSmall()).rejects.toThrow("mistake");
  });
});
