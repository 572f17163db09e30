import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Observed } from "../../../src/sync/ledger/files/observed.ts";
import { ledgerFile, openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import { lockFolder } from "../../../src/lib/folder-lock.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kbsync-ledger-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

const observed = (path: string, more: Partial<Observed> = {}): Observed => ({
  entry: { path, sizeBytes: 3, mtimeMs: 1.25, ctimeMs: 2.5, ino: 2 ** 40 },
  rulesKey: 2 ** 47 + 1,
  hash: "h",
  digest: "d",
  title: path,
  label: "l",
  extractorVersion: 1,
  shape: {
    kind: "content",
    tier: "fastest",
    ownerId: "o",
    settings: { strategy: "recursive", chunkSize: 10, chunkOverlap: 1 },
  },
  fileUrl: undefined,
  ...more,
});

function withSource(ledger: Ledger): number {
  return ledger.sources.open("/docs", "o", "fastest").id;
}

describe("the ledger", () => {
  it("returns open creates and doubts of configured sources, and no deletes", () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    ledger.note(() => {
      ledger.intents.create(source, "key 1", 5, observed("a"));
      ledger.intents.doubt(ledger.intents.create(source, "key 2", 5, observed("b")), null);
      ledger.intents.delete(source, "c", "doc");
    });
    ledger.flush();
    expect(ledger.intents.allOpen().map(({ path }) => path)).toEqual(["a", "b"]);
    ledger.note(() => ledger.sources.keepActive([]));
    ledger.flush();
    expect(ledger.intents.allOpen()).toEqual([]);
    ledger.close();
  });

  it("knows a resource, also after it is lost or deleted", () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    const { files, intents } = ledger;
    const known: unknown[] = [files.knows("doc")];
    const record = (change: (id: number) => void): void => {
      ledger.note(() => change(files.living(source, "a")?.id ?? 0));
      ledger.flush();
      known.push([files.knows("doc"), files.acknowledged("doc")?.path]);
    };
    record(() => files.insert(source, "doc", "agreed", observed("a")));
    record((id) => files.lose(id));
    record((id) => files.remove(id));
    record(() => intents.delete(source, "a", "doc"));
    record(() => intents.deleted(intents.deletes(source)[0]?.id ?? 0, "doc"));
    expect(known).toEqual([
      false,
      [true, "a"],
      [true, undefined],
      [false, undefined],
      [true, undefined],
      [true, undefined],
    ]);
    ledger.close();
  });

  it("returns what was written after it was closed and reopened", async () => {
    const first = openLedger(dir, "s");
    const source = withSource(first);
    await first.write(() => {
      first.files.insert(source, "doc1", "agreed", observed("a/b", { fileUrl: "http://x/1" }));
      first.intents.create(source, "key", 5, observed("c"));
    });
    first.close();
    const second = openLedger(dir, "s");
    const [row] = second.files.below(source, ["a"]);
    expect(second.files.get(row?.id ?? 0)).toMatchObject({
      id: 1,
      path: "a/b",
      docId: "doc1",
      state: "agreed",
      sizeBytes: 3,
      mtimeMs: 1.25,
      ctimeMs: 2.5,
      ino: 2 ** 40,
      rulesKey: 2 ** 47 + 1,
      hash: "h",
      digest: "d",
      sent: "",
      title: "a/b",
      label: "l",
      extractorVersion: 1,
      shape: observed("").shape,
      fileUrl: "http://x/1",
      metadataHash: null,
    });
    expect(second.intents.creates(source)).toMatchObject([
      { path: "c", key: "key", atMs: 5, attempts: 1, observed: observed("c") },
    ]);
    second.close();
  });

  it("loses notes but no writes in a crash", async () => {
    const first = openLedger(dir, "s");
    const source = withSource(first);
    await first.write(() => first.files.insert(source, "doc1", "agreed", observed("a")));
    first.note(() => first.files.insert(source, "doc2", "agreed", observed("b")));
    first.abandon();
    const second = openLedger(dir, "s");
    expect([...second.files.all(source)].map(({ path }) => path)).toEqual(["a"]);
    second.close();
  });

  it("shares one transaction among the writes of one turn", async () => {
    const steps: string[] = [];
    const ledger = openLedger(dir, "s", { step: (name) => steps.push(name) });
    const source = withSource(ledger);
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        ledger.write(() => ledger.files.insert(source, `doc${index}`, "agreed", observed(`${index}`))),
      ),
    );
    expect(steps).toEqual(["commit", "committed"]);
    ledger.close();
  });

  it("the ledger fails every write after one has failed, and says why", async () => {
    let failure: Error | undefined;
    const ledger = openLedger(dir, "s", { onFailure: (error) => (failure = error) });
    const source = withSource(ledger);
    const ofUnknown = ledger.write(() => ledger.files.insert(source + 1, "doc", "agreed", observed("a")));
    await expect(ofUnknown).rejects.toMatchObject({ code: "ledger_unusable" });
    expect(failure?.message).toContain("FOREIGN KEY");
    await expect(ledger.write(() => undefined)).rejects.toBe(failure);
    ledger.abandon();
  });

  it("the ledger counts the files of each state, whatever happens to them", async () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    const counts = (): number[] => {
      ledger.flush();
      const { agreed, unsure, failed, held } = ledger.sources.get(source);
      return [agreed, unsure, failed, held];
    };
    await ledger.write(() => {
      ledger.files.insert(source, "doc1", "agreed", observed("a"));
      ledger.files.insert(source, "doc2", "unsure", observed("b"));
    });
    expect(counts()).toEqual([1, 1, 0, 0]);
    ledger.note(() => ledger.files.setState(1, "held"));
    const trouble = {
      entry: observed("b").entry,
      rulesKey: 1,
      state: "failed" as const,
      sure: true,
      code: "c",
      message: "m",
    };
    ledger.note(() => ledger.files.trouble(source, 2, trouble));
    expect(counts()).toEqual([0, 0, 1, 1]);
    ledger.note(() => ledger.files.remove(1));
    ledger.note(() => ledger.files.remove(2));
    expect(counts()).toEqual([0, 0, 0, 0]);
    ledger.close();
  });

  it("finds what is below a folder, and not its neighbours", async () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    await ledger.write(() => {
      for (const [index, path] of ["d", "d-", "d/a", "d/b/c", "d0", "e", "d/é", "d/\u{1F600}"].entries()) {
        ledger.files.insert(source, `doc${index}`, "agreed", observed(path));
      }
    });
    const found = Array.from(ledger.files.below(source, ["d"]), ({ path }) => path);
    expect(found.toSorted()).toEqual(["d", "d/a", "d/b/c", "d/é", "d/\u{1F600}"].toSorted());
    ledger.close();
  });

  it("reads many rows in pages, without other sources' rows, during concurrent writes", async () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    const other = ledger.sources.open("/other", "o", "fastest").id;
    const paths = Array.from({ length: 2500 }, (_, index) => `d/${String(index).padStart(4, "0")}`);
    await ledger.write(() => {
      for (const [index, path] of paths.entries()) {
        ledger.files.insert(other, `other${index}`, "agreed", observed(path));
        ledger.files.insert(source, `doc${index}`, "agreed", observed(path));
      }
    });
    for (const rows of [ledger.files.all(source), ledger.files.below(source, ["d"])]) {
      const seen: string[] = [];
      for (const { id, path } of rows) {
        seen.push(path);
        if (seen.length % 500 === 0) await ledger.write(() => ledger.files.setState(id, "unsure"));
      }
      expect(seen.toSorted()).toEqual(paths);
    }
    ledger.close();
  });

  it("moves rows around a ring", async () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    await ledger.write(() => {
      for (const [index, path] of ["a", "b", "c"].entries())
        ledger.files.insert(source, `doc${index}`, "agreed", observed(path));
    });
    await ledger.write(() =>
      ledger.files.repath([
        { id: 1, to: "b" },
        { id: 2, to: "c" },
        { id: 3, to: "a" },
      ]),
    );
    expect([...ledger.files.all(source)].map(({ path, rulesKey }) => `${path} ${rulesKey}`)).toEqual([
      "b 0",
      "c 0",
      "a 0",
    ]);
    ledger.close();
  });

  it("displaces a row at the path of a moved or restored one", async () => {
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    await ledger.write(() => {
      ledger.files.insert(source, "moved", "agreed", observed("a"));
      ledger.files.insert(source, "made meanwhile", "agreed", observed("b"));
      ledger.files.insert(source, "back", "held", observed("c"));
      ledger.files.insert(source, null, "failed", observed("c"));
    });
    await ledger.write(() => {
      ledger.files.repath([{ id: 1, to: "b" }]);
      ledger.files.restore(3, "c");
    });
    expect(
      [...ledger.files.all(source)].map(({ docId, path, state }) => `${docId} ${path} ${state}`),
    ).toEqual(["moved b agreed", "made meanwhile b doomed", "back c agreed"]);
    ledger.close();
  });

  it("refuses a newer ledger, another service's, and a damaged one, in words", () => {
    const own = openLedger(dir, "s");
    own.claim();
    own.close();
    expect(() => openLedger(dir, "other")).toThrow(
      expect.objectContaining({
        code: "ledger_other_service",
        hint: "Give each service a state folder of its own: `--state-dir`, or `stateDir` in the configuration. The daemon fills a new knowledge base from its folders.",
      }) as Error,
    );
    const db = new Database(ledgerFile(dir));
    db.pragma("user_version = 99");
    db.close();
    expect(() => openLedger(dir, "s")).toThrow(expect.objectContaining({ code: "ledger_newer" }) as Error);
    writeFileSync(
      ledgerFile(dir),
      "this is no database, but long enough to look like the header of one. ".repeat(100),
    );
    expect(() => openLedger(dir, "s")).toThrow(expect.objectContaining({ code: "ledger_damaged" }) as Error);
  });

  it("the ledger can be read while another process has it open", async () => {
    expect(readStatus(dir, 10)).toBeUndefined();
    const ledger = openLedger(dir, "s");
    const source = withSource(ledger);
    await ledger.write(() => {
      ledger.files.insert(source, "doc", "agreed", observed("a"));
      ledger.sources.setCollectionId("fastest", "c");
      ledger.sources.setBacklog(source, 3, 1);
    });
    expect(readStatus(dir, 10)?.sources).toMatchObject([
      {
        path: "/docs",
        ownerId: "o",
        collectionId: "c",
        files: 3,
        searchable: 0,
        waiting: 3,
        failed: 0,
        held: 0,
      },
    ]);
    ledger.close();
  });
});

describe("the lock of a state folder", () => {
  it("refuses a second lock and names the first, also in the same process", () => {
    const lock = lockFolder(dir, "daemon");
    expect(() => lockFolder(dir, "daemon")).toThrow(
      expect.objectContaining({ code: "state_locked" }) as Error,
    );
    expect(() => lockFolder(dir, "daemon")).toThrow(String(process.pid));
    lock.release();
    lockFolder(dir, "daemon").release();
  });

  it("refuses a second process, and is free after a kill -9", async () => {
    const holder = fork(fileURLToPath(new URL("lock-holder.ts", import.meta.url)), [dir]);
    const exited = once(holder, "exit");
    try {
      await once(holder, "message");
      expect(() => lockFolder(dir, "daemon")).toThrow(`process ${holder.pid}`);
    } finally {
      holder.kill("SIGKILL");
    }
    await exited;
    lockFolder(dir, "daemon").release();
  });
});
