import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { openWorld, type World } from "../../sync/daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

async function dryRun(options: Parameters<World["daemon"]>[0] = {}, signal?: AbortSignal) {
  const daemon = world.daemon(options);
  try {
    return await daemon.syncOnce({ dryRun: true, ...(signal && { signal }) });
  } finally {
    await daemon.close();
  }
}

/** Every row of the tables of sources and files. */
function rows(): unknown[] {
  const db = new Database(ledgerFile(world.stateDir), { readonly: true });
  try {
    return ["sources", "files", "intents", "collections", "activity"].map((table) =>
      db.prepare(`SELECT * FROM ${table}`).all(),
    );
  } finally {
    db.close();
  }
}

it("writes no row in a new state folder, and still reports each source", async () => {
  world.write("a.txt", "a");
  const { planned, status } = await dryRun();
  expect(planned).toMatchObject([{ source: world.root, action: "create", path: "a.txt" }]);
  expect(status.sources).toMatchObject([{ path: world.root, files: 0 }]);
  expect(rows().flat()).toEqual([]);
});

it("a dry run does not make the ledger a service's own", async () => {
  world.write("a.txt", "a");
  await dryRun();
  const db = new Database(ledgerFile(world.stateDir), { readonly: true });
  const names = db.prepare("SELECT name FROM meta").pluck().all();
  db.close();
  expect(names).not.toContain("service");
  // So that the folder can still be synced with another one.
  const { url, key } = world.service;
  await world.sync({ service: { apiUrl: url, dbUrl: url, pauthkey: key, identity: "another" } });
});

it("changes no row of a known source, though the configuration has changed", async () => {
  world.write("a.txt", "a");
  await world.sync();
  const before = rows();
  const { planned, status } = await dryRun({ sources: [world.source({ ownerId: "another" })] });
  expect(planned).toHaveLength(1);
  expect(status.sources).toMatchObject([{ ownerId: "another" }]);
  expect(rows()).toEqual(before);
});

it("reports that nothing would be sent for a missing folder, and why", async () => {
  world.write("a.txt", "a");
  await world.sync();
  renameSync(world.root, `${world.root}-away`);
  const { planned } = await dryRun();
  expect(planned).toEqual([
    { source: world.root, action: "halt", path: "", reason: "the folder is missing or is not a folder" },
  ]);
});

it("lists no create for a folder that was replaced by another one", async () => {
  for (const name of ["a", "b"]) world.write(`${name}.txt`, name);
  await world.sync();
  renameSync(world.root, `${world.root}-away`);
  world.write("other.txt", "other");
  const { planned } = await dryRun();
  expect(planned?.map(({ action }) => action)).toEqual(["halt"]);
});

it("holds what an emptied folder is missing, with the reason", async () => {
  for (const name of ["a", "b"]) world.write(`${name}.txt`, name);
  await world.sync();
  for (const name of ["a", "b"]) rmSync(join(world.root, `${name}.txt`));
  const { planned } = await dryRun();
  expect(planned).toMatchObject([
    { action: "hold", path: "a.txt", reason: "the folder was emptied" },
    { action: "hold", path: "b.txt", reason: "the folder was emptied" },
  ]);
});

it("ends when the signal aborts", async () => {
  world.write("a.txt", "a");
  await expect(dryRun({}, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
});

it("a held file says why it is held", async () => {
  for (const name of ["a", "b"]) world.write(`${name}.txt`, name);
  await world.sync();
  for (const name of ["a", "b"]) rmSync(join(world.root, `${name}.txt`));
  const daemon = world.daemon();
  await daemon.syncOnce();
  expect(daemon.files({ limit: 10 })).toMatchObject([
    { path: "a.txt", state: "held", code: "held", message: "the folder was emptied" },
    { path: "b.txt", state: "held" },
  ]);
  await daemon.close();
});

it("reads a touched file, but does not count it as sent", async () => {
  world.write("a.txt", "a");
  await world.sync();
  world.write("a.txt", "a");
  const daemon = world.daemon();
  const { status } = await daemon.syncOnce();
  expect(status.progress).toMatchObject({ total: 1, sent: 0 });
  await daemon.close();
});
