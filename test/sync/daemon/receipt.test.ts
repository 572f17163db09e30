import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon } from "../../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { openCommands } from "../../../src/sync/operator/commands.ts";
import { readLedger } from "../../../src/sync/operator/offline.ts";
import type { FolderReceipt, LedgerReceiptRequest } from "../../../src/wire/receipt.ts";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
let stopping: AbortController;
let running: Promise<void>[];
/** Whether the watch reports changes. */
let isDeaf: boolean;
beforeEach(async () => {
  world = await openWorld();
  stopping = new AbortController();
  running = [];
  isDeaf = false;
});
afterEach(async () => {
  await stop();
  await world.end();
});

async function run(): Promise<Daemon> {
  const daemon = world.daemon({
    world: {
      ...REAL_WORLD,
      watch: (options) =>
        REAL_WORLD.watch({
          ...options,
          onDirty: (path) => {
            if (!isDeaf) options.onDirty(path);
          },
        }),
    },
  });
  running.push(daemon.run({ signal: stopping.signal }));
  await daemon.whenIdle();
  return daemon;
}
async function stop(): Promise<void> {
  stopping.abort();
  await Promise.all(running);
}
const folderOf = async (
  daemon: Daemon,
  request: Partial<LedgerReceiptRequest> = {},
): Promise<FolderReceipt | undefined> => (await daemon.receipt({ cited: [], ...request })).folders[0];
/** Once the folder is watched. */
const watched = async (daemon: Daemon): Promise<void> => {
  let last: FolderReceipt | undefined;
  const ask = async (): Promise<void> => {
    last = await folderOf(daemon);
  };
  await ask();
  await until(
    () => {
      void ask();
      return last?.current === true;
    },
    () => JSON.stringify(last),
  );
};
const docOf = (title: string): string => world.service.live().find((each) => each.title === title)?._id ?? "";

describe("the receipt of a running daemon", () => {
  it("the receipt of a running daemon is current while everything is acknowledged, as of some seconds ago", async () => {
    world.write("a.txt", "a");
    const daemon = await run();
    await watched(daemon);
    const receipt = await folderOf(daemon);
    expect(receipt).toMatchObject({
      folder: world.root,
      ownerId: "docs-owner",
      current: true,
      pending: 0,
      failed: 0,
      held: 0,
      unreadable: 0,
      noticing: "watched",
    });
    expect(Date.parse(receipt?.asOf ?? "")).toBeLessThanOrEqual(Date.now());
  });

  it("a receipt with a wait covers what was saved before the question, even without an event", async () => {
    world.write("a.txt", "a");
    const daemon = await run();
    await watched(daemon);
    isDeaf = true;
    world.write("b.txt", "b");
    const askedMs = Date.now();
    const receipt = await folderOf(daemon, { waitSeconds: 10 });
    expect(receipt).toMatchObject({ current: true, pending: 0 });
    expect(Date.parse(receipt?.asOf ?? "")).toBeGreaterThanOrEqual(askedMs);
    expect(docOf("b.txt")).not.toBe("");
  });

  it("the receipt of a running daemon counts what waits, and what the wait was too short for", async () => {
    world.write("a.txt", "a");
    const daemon = await run();
    await watched(daemon);
    await daemon.pause();
    world.write("b.txt", "b");
    await until(() => daemon.status().sources[0]?.waiting === 1);
    expect(await folderOf(daemon)).toMatchObject({ current: false, pending: 1, noticing: "paused" });
    expect(await folderOf(daemon, { waitSeconds: 5 })).toMatchObject({ current: false, pending: 1 });
  });

  it("the receipt of a running daemon counts held deletes, whose documents have changed", async () => {
    for (const name of ["a.txt", "b.txt"]) world.write(name, name);
    const daemon = await run();
    for (const name of ["a.txt", "b.txt"]) rmSync(join(world.root, name));
    await until(() => daemon.status().sources[0]?.held === 2);
    expect(await folderOf(daemon, { waitSeconds: 5 })).toMatchObject({ current: false, held: 2 });
    const { changed } = await daemon.receipt({ cited: [docOf("a.txt"), "unknown"] });
    expect(changed).toEqual([docOf("a.txt")]);
  });

  it("names cited documents whose file is another one now, before the daemon has noticed it", async () => {
    for (const name of ["same.txt", "edited.txt", "touched.txt", "gone.txt", "rest.txt"])
      world.write(name, name);
    const daemon = await run();
    await watched(daemon);
    isDeaf = true;
    world.write("edited.txt", "another text");
    utimesSync(join(world.root, "touched.txt"), new Date(0), new Date(0));
    rmSync(join(world.root, "gone.txt"));
    const cited = ["same.txt", "edited.txt", "touched.txt", "gone.txt"].map(docOf);
    const { changed, folders } = await daemon.receipt({ scopes: [], cited });
    expect(changed).toEqual(cited.slice(1));
    expect(folders).toEqual([]);
  });

  it("covers the folders of a scope, one document, or nothing that it does not know", async () => {
    world.write("a.txt", "a");
    world.write("b.txt", "b");
    const daemon = await run();
    await watched(daemon);
    const { collectionId = "" } = (await folderOf(daemon)) ?? {};
    const scope = { collectionId, ownerId: "docs-owner" };
    expect((await daemon.receipt({ scopes: [scope, scope], cited: [] })).folders).toHaveLength(1);
    const document = { documentId: docOf("a.txt") };
    expect((await daemon.receipt({ scopes: [document], cited: [] })).folders).toMatchObject([
      { current: true, pending: 0 },
    ]);
    isDeaf = true;
    world.write("a.txt", "another a");
    expect((await daemon.receipt({ scopes: [document], cited: [], waitSeconds: 10 })).folders).toMatchObject([
      { current: true },
    ]);
    const others = [
      { ...scope, ownerId: "another" },
      { collectionId: "another", ownerId: "docs-owner" },
    ];
    const foreign = [...others, { documentId: "f".repeat(24) }];
    expect((await daemon.receipt({ scopes: foreign, cited: [] })).folders).toEqual([]);
  });

  it("ends a wait when its caller has left", async () => {
    world.write("a.txt", "a");
    const daemon = await run();
    const left = new AbortController();
    left.abort(new Error("the caller left"));
    const asked = daemon.receipt({ cited: [], waitSeconds: 10 }, left.signal);
    await expect(asked).rejects.toThrow("the caller left");
  });
});

describe("the receipt of a ledger alone", () => {
  it("says as of when the folder was acknowledged, and that no daemon runs", async () => {
    world.write("a.txt", "a");
    const beforeMs = Date.now();
    await world.sync();
    const doc = docOf("a.txt");
    world.write("a.txt", "another a");
    const receipt = await readLedger(world.stateDir, (ledger) =>
      openCommands(ledger, { stateDir: world.stateDir, sources: () => [world.source()] }).receipt({
        cited: [doc],
      }),
    );
    expect(receipt).toMatchObject({
      folders: [{ current: false, pending: 0, noticing: "stopped" }],
      changed: [doc],
    });
    const asOfMs = Date.parse(receipt?.folders[0]?.asOf ?? "");
    expect(asOfMs).toBeGreaterThanOrEqual(beforeMs);
    expect(asOfMs).toBeLessThanOrEqual(Date.now());
  });
});
