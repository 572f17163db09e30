import { cpSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { syncSettings } from "../settings.ts";
import { recoverLedger, type RecoverReport } from "../../../src/sync/daemon.ts";
import type { WatchedSource } from "../../../src/sync/rules/rules.ts";
import { openWorld, type World } from "../daemon/harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

let world: World;
let sources: WatchedSource[];
beforeEach(async () => {
  world = await openWorld({ collections: true });
  sources = [world.source()];
});
afterEach(async () => {
  await world.end();
});

const recover = (): Promise<RecoverReport> =>
  recoverLedger({
    stateDir: world.stateDir,
    service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key },
    sources,
    sync: syncSettings({ settleMs: 0 }),
  });
const sync = (): Promise<void> => world.sync({ sources });
/** Syncs what happens after a backup of the ledger, and then puts the backup in its place. */
const syncAndRestore = async (change: () => void | Promise<void>): Promise<void> => {
  const backup = `${world.stateDir}-backup`;
  cpSync(world.stateDir, backup, { recursive: true });
  await change();
  await sync();
  const isOfLedger = (name: string): boolean => name.startsWith("ledger.db");
  for (const name of readdirSync(world.stateDir).filter(isOfLedger)) rmSync(join(world.stateDir, name));
  for (const name of readdirSync(backup).filter(isOfLedger))
    renameSync(join(backup, name), join(world.stateDir, name));
};
const live = (): unknown[][] => world.service.live().map(({ _id, title, content }) => [_id, title, content]);
/** Recovers and syncs. Returns the texts that were sent, and what the service has then. */
const recoverAndSync = async (): Promise<{ readonly texts: unknown[]; readonly resources: unknown[] }> => {
  const number = world.service.requests.length;
  await recover();
  await sync();
  const bodies = world.service.requests.slice(number).map(({ body }) => body ?? {});
  return { texts: bodies.filter((body) => "content" in body), resources: live() };
};

it("recover finds the new resource of an upload that was emptied since the backup", async () => {
  world.write("a.txt", PDF);
  await sync();
  await syncAndRestore(() => world.write("a.txt", ""));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it("recover finds the new resource of an empty file that was renamed to a text's name since the backup", async () => {
  world.write("a.pdf", PDF);
  await sync();
  world.write("a.pdf", "");
  await sync();
  await syncAndRestore(() => renameSync(join(world.root, "a.pdf"), join(world.root, "b.md")));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it("recover sends nothing for a text that was emptied since the backup", async () => {
  world.write("a.txt", "text a");
  await sync();
  await syncAndRestore(() => world.write("a.txt", ""));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it.each(["b.txt", "b.md"])(
  "recover leaves a file its resource that was renamed to %s since the backup and is empty now",
  async (name) => {
    world.write("a.txt", "text a");
    await sync();
    await syncAndRestore(() => renameSync(join(world.root, "a.txt"), join(world.root, name)));
    world.write(name, "");
    const [before] = world.service.live();
    const { resources } = await recoverAndSync();
    expect(resources).toEqual([[before?._id, name, ""]]);
  },
);

it.each([
  { name: "c.txt", isSynced: true },
  { name: "c.txt", isSynced: false },
  { name: "c.md", isSynced: true },
  { name: "c.md", isSynced: false },
])(
  "recover leaves the emptied $name its resource if another file has its former text (emptied before the end: $isSynced)",
  async ({ name, isSynced }) => {
    world.write("b.txt", "text");
    await sync();
    await syncAndRestore(async () => {
      renameSync(join(world.root, "b.txt"), join(world.root, name));
      await sync();
      if (isSynced) world.write(name, "");
      await sync();
      world.write("a.txt", "text");
    });
    world.write(name, "");
    const resources = live();
    expect(resources).toHaveLength(2);
    const expected = resources.map((each) => (each[1] === name ? [each[0], name, ""] : each));
    expect((await recoverAndSync()).resources).toEqual(expected);
  },
);

it.each([
  { what: "empty", content: Buffer.of() },
  { what: "binary", content: Buffer.of(0, 1, 2, 0, 0, 255, 0, 3) },
])(
  "recover gives no deleted file's resource to a file without text ($what), though all have one description",
  async ({ content }) => {
    sources = [world.source({ rules: [{ match: "**", description: "Handbook" }] })];
    world.write("b.txt", "secret");
    world.write("e.txt", content);
    await sync();
    await syncAndRestore(async () => {
      renameSync(join(world.root, "b.txt"), join(world.root, "c.txt"));
      await sync();
      world.write("b.txt", "text");
      world.write("k.txt", "text k");
    });
    rmSync(join(world.root, "c.txt"));
    await recoverAndSync();
    await sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["b.txt", "k.txt"]);
  },
);

it("recover keeps the resource of a file that cannot be read, though its former name is another file's", async () => {
  world.write("b.txt", "text b");
  world.write("closed/k.txt", "text k");
  await sync();
  await syncAndRestore(async () => {
    renameSync(join(world.root, "b.txt"), join(world.root, "closed/c.txt"));
    await sync();
    world.write("b.txt", "text");
  });
  const resources = live();
  expect(resources).toHaveLength(3);
  const unreadable = join("closed", ".kbsyncignore");
  world.write(unreadable, "#".repeat(2 * 1024 * 1024));
  expect((await recoverAndSync()).resources).toEqual(resources);
  rmSync(join(world.root, unreadable));
  await sync();
  expect(live()).toEqual(resources);
});

it("recover follows two resources of which one file's is another one's by now", async () => {
  world.write("b.txt", "text b");
  world.write("c.txt", "text c");
  await sync();
  await syncAndRestore(async () => {
    renameSync(join(world.root, "c.txt"), join(world.root, "d.txt"));
    await sync();
    renameSync(join(world.root, "b.txt"), join(world.root, "c.txt"));
    await sync();
    world.write("c.txt", "text b, edited");
    world.write("b.txt", "text");
    await sync();
    world.write("d.txt", "");
  });
  const resources = live();
  expect(resources).toHaveLength(3);
  expect((await recoverAndSync()).resources).toEqual(resources);
});

it("recover leaves no second resource of a file that has no text now", async () => {
  world.write("b.txt", "text b");
  await sync();
  await syncAndRestore(async () => {
    renameSync(join(world.root, "b.txt"), join(world.root, "c.txt"));
    await sync();
    // Another resource replaces that of c.txt, which the service does not delete.
    sources = [world.source({ settings: { chunkSize: 500 } })];
    world.service.fault = ({ operation }) =>
      operation === "delete"
        ? { kind: "answer", status: 400, body: '{"success":false,"message":"no"}' }
        : undefined;
    await sync();
    world.write("b.txt", "text");
  });
  world.service.fault = () => undefined;
  expect(live()).toHaveLength(3);
  world.write("c.txt", "");
  await recoverAndSync();
  world.write("c.txt", "text again");
  await sync();
  const texts = world.service.live().map(({ title, content }) => `${title}: ${content}`);
  expect(texts.toSorted()).toEqual(["b.txt: text", "c.txt: text again"]);
});
