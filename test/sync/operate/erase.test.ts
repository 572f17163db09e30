import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { erase } from "../../../src/sync/operate/erase.ts";
import { changeLedger } from "../../../src/sync/operate/offline.ts";
import type { AnswerOf, RequestOf } from "../../../src/wire/daemon.ts";
import { openIntents } from "../../../src/sync/ledger/intents/intents.ts";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { openSqlite } from "../../../src/sync/ledger/database/open.ts";
import { observedAt } from "../send/fixture.ts";
import { openWorld, type World } from "../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
  for (const name of ["gone.txt", "stays.txt", "old.txt"]) world.write(name, `text of ${name}`);
  await world.sync();
});
afterEach(() => world.end());

const run = (request: RequestOf<"erase">): Promise<AnswerOf<"erase"> | undefined> =>
  changeLedger(world.stateDir, (ledger) =>
    erase(
      {
        ledger,
        stateDir: world.stateDir,
        sources: [world.source()],
        service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key },
      },
      request,
      new AbortController().signal,
    ),
  );
const at = (name: string): string => join(world.root, name);

it("deletes the documents at a service that does not know purges", async () => {
  rmSync(at("gone.txt"));
  expect(await run({ path: at("gone.txt") })).toEqual({ documents: 1, purged: false });
  expect(world.service.live()).toHaveLength(2);
  expect(readFileSync(ledgerFile(world.stateDir)).includes("gone.txt")).toBe(false);
  await world.sync();
  expect(world.service.live()).toHaveLength(2);
});

it("refuses a file that is still synced", async () => {
  await expect(run({ path: at("gone.txt") })).rejects.toMatchObject({
    code: "still_synced",
    subject: at("gone.txt"),
  });
  expect(world.service.live()).toHaveLength(3);
});

it("leaves the document of a file that was moved away, and removes the old path", async () => {
  rmSync(at("old.txt"));
  world.write("new.txt", "text of old.txt");
  await world.sync();
  await run({ path: at("old.txt") });
  expect(world.service.live()).toHaveLength(3);
  expect(readFileSync(ledgerFile(world.stateDir)).includes("old.txt")).toBe(false);
});

it("refuses a file while the source's folder is missing, because it may return", async () => {
  rmSync(world.root, { recursive: true });
  await expect(run({ path: at("gone.txt") })).rejects.toMatchObject({ code: "source_missing" });
});

it("refuses a file whose create was not answered, because the service may have it under an unknown id", async () => {
  rmSync(at("gone.txt"));
  const db = openSqlite(ledgerFile(world.stateDir));
  const intents = openIntents(db);
  const source = db.prepare<[], number>("SELECT id FROM sources").pluck().get() ?? 0;
  const intent = intents.create(source, "key", 1, observedAt("gone.txt"));
  await expect(run({ path: at("gone.txt") })).rejects.toMatchObject({
    code: "erase_unsettled",
    retryable: true,
  });
  expect(world.service.live()).toHaveLength(3);
  intents.remove(intent);
  db.close();
  expect(await run({ path: at("gone.txt") })).toEqual({ documents: 1, purged: false });
});

it("refuses a path outside of all sources", async () => {
  await expect(run({ path: "/elsewhere" })).rejects.toMatchObject({ code: "outside_sources" });
});
