import { cpSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CONCURRENCY_HOSTED } from "../../../src/config/schema/sync.ts";
import { ConfigFile } from "../../../src/config/schema.ts";
import { recoverLedger, type RecoverReport } from "../../../src/sync/daemon.ts";
import { openWorld, type World } from "../daemon/harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

const recover = (): Promise<RecoverReport> =>
  recoverLedger({
    stateDir: world.stateDir,
    service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key },
    sources: [world.source()],
    sync: { ...ConfigFile.parse({ sync: { settleMs: 0 } }).sync, concurrency: CONCURRENCY_HOSTED },
  });
/** Syncs what happens after a backup of the ledger, and then puts the backup in its place. */
const syncAndRestore = async (change: () => void | Promise<void>): Promise<void> => {
  const backup = `${world.stateDir}-backup`;
  cpSync(world.stateDir, backup, { recursive: true });
  await change();
  await world.sync();
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
  await world.sync();
  const bodies = world.service.requests.slice(number).map(({ body }) => body ?? {});
  return { texts: bodies.filter((body) => "content" in body), resources: live() };
};

it("recover finds the new resource of an upload that was emptied since the backup", async () => {
  world.write("a.txt", PDF);
  await world.sync();
  await syncAndRestore(() => world.write("a.txt", ""));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it("recover finds the new resource of an empty file that was renamed to a text's name since the backup", async () => {
  world.write("a.pdf", PDF);
  await world.sync();
  world.write("a.pdf", "");
  await world.sync();
  await syncAndRestore(() => renameSync(join(world.root, "a.pdf"), join(world.root, "b.md")));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it("recover sends nothing for a text that was emptied since the backup", async () => {
  world.write("a.txt", "text a");
  await world.sync();
  await syncAndRestore(() => world.write("a.txt", ""));
  const resources = live();
  expect(resources).toHaveLength(1);
  expect(await recoverAndSync()).toEqual({ texts: [], resources });
});

it.each(["b.txt", "b.md"])(
  "recover leaves a file its resource that was renamed to %s since the backup and is empty now",
  async (name) => {
    world.write("a.txt", "text a");
    await world.sync();
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
    await world.sync();
    await syncAndRestore(async () => {
      renameSync(join(world.root, "b.txt"), join(world.root, name));
      await world.sync();
      if (isSynced) world.write(name, "");
      await world.sync();
      world.write("a.txt", "text");
    });
    world.write(name, "");
    const resources = live();
    expect(resources).toHaveLength(2);
    const expected = resources.map((each) => (each[1] === name ? [each[0], name, ""] : each));
    expect((await recoverAndSync()).resources).toEqual(expected);
  },
);
