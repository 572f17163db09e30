import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { generateKey } from "../../../../../src/kb/keys/keys.ts";
import { openDatabase } from "../../../../../src/kb/store/postgres/database/database.ts";
import {
  bringUpToDate,
  readVersions,
  type Versions,
} from "../../../../../src/kb/store/postgres/database/migrate.ts";
import { SCHEMA, type Script } from "../../../../../src/kb/store/postgres/database/schema.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { openRandom } from "../../../../simulate/virtual/random.ts";
import { type ServiceProcess, startProcess } from "../../../service/process.ts";
import { openReceiver, type Receiver } from "../../../webhooks/receiver.ts";
import { isSkipped, newDatabase, rowsOf } from "../databases.ts";
import { expectDocuments, expectMessages, expectRecords } from "./agreement.ts";
import { openClient, startLoad, type Client } from "./load.ts";

const PROCESSES = 4;
const CLIENTS = 4;
const TEST_MS = 180_000;
const WAIT = { timeout: 60_000, interval: 300 };
const VERSION = SCHEMA.baseline + SCHEMA.scripts.length - 1;

/** A later version of the tables: it adds what older programs do not know, in a table that each write changes. */
const EXPAND: Script = {
  minimum: VERSION,
  sql: "ALTER TABLE resource ADD COLUMN later text NOT NULL DEFAULT 'x'; CREATE INDEX resource_later ON resource (later)",
};
/** A version after that, with which only programs of the later version work. */
const CONTRACT: Script = { minimum: VERSION + 1, sql: "CREATE TABLE later_still (a integer)" };

describe.skipIf(isSkipped())("a rolling upgrade", () => {
  const key = generateKey();
  const processes: ServiceProcess[] = [];
  let url: string;
  let stateDir: string;
  let receiver: Receiver;
  let client: Client;

  const optionsOf = (at: number, laterScripts: readonly Script[]) => ({
    stateDir: join(stateDir, String(at)),
    key,
    database: url,
    laterScripts,
  });
  const versions = async (): Promise<Versions | undefined> => {
    const database = openDatabase(url);
    try {
      return await database.run("snapshot", "", readVersions);
    } finally {
      await database.close();
    }
  };
  const bringTo = async (...later: readonly Script[]): Promise<void> => {
    const database = openDatabase(url);
    await bringUpToDate(database, { ...SCHEMA, scripts: [...SCHEMA.scripts, ...later] });
    await database.close();
    expect(await versions()).toEqual({
      minimum: later.at(-1)?.minimum,
      maximum: VERSION + later.length,
    });
  };
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "kbsync-upgrade-"));
    receiver = await openReceiver();
    url = await newDatabase();
    for (let at = 0; at < PROCESSES; at += 1) processes.push(await startProcess(optionsOf(at, [])));
    client = openClient((at) => processes[at % PROCESSES]?.url ?? "", key);
  }, TEST_MS);
  afterAll(async () => {
    for (const { child } of processes) child.kill("SIGKILL");
    await client.close();
    await receiver.close();
    await rm(stateDir, { recursive: true });
  });

  it(
    "a rolling upgrade replaces one process after another under load, and loses and repeats nothing",
    async () => {
      const seed = process.env["KBSYNC_TEST_SEED"] ?? String(Date.now());
      process.stderr.write(`a rolling upgrade: KBSYNC_TEST_SEED=${seed}\n`);
      const random = openRandom(seed);
      await client.send(0, "POST", "/v1/webhooks", { url: `${receiver.url}/` });
      const { data } = (await client.send(0, "GET", "/api/rag/collections")).json;
      const collectionId: string = data.collections.find(
        (each: { details: string }) => each.details === "fastest",
      )._id;
      const load = startLoad(client, collectionId, { services: PROCESSES, clients: CLIENTS, random });
      const goesOn = async (): Promise<void> => {
        const before = load.known.length;
        await vi.waitFor(
          () => expect(load.known.length, `after: ${load.problems[0]}`).toBeGreaterThan(before + 5),
          WAIT,
        );
      };
      await goesOn();
      for (let at = 0; at < PROCESSES; at += 1) {
        const former = processes[at]?.child;
        if (former === undefined) throw new Error("unreachable: each was started");
        const ended = once(former, "exit");
        former.kill("SIGTERM");
        await ended;
        // The first of them adds to the tables, with which the others go on.
        processes[at] = await startProcess(optionsOf(at, [EXPAND]));
        expect(await versions()).toEqual({ minimum: SCHEMA.scripts.at(-1)?.minimum, maximum: VERSION + 1 });
        await goesOn();
      }
      // The older ones are gone, so what only they needed may go. One that comes back is refused.
      await bringTo(EXPAND, CONTRACT);
      await goesOn();
      await expect(openPostgresStore(url)).rejects.toMatchObject({ code: "store_newer" });
      await load.stop();
      await vi.waitFor(
        async () => expect(await rowsOf(url, "SELECT number FROM job WHERE NOT is_failed")).toEqual([]),
        { ...WAIT, timeout: 120_000 },
      );
      expect(load.problems).toEqual([]);
      for (let at = 0; at < PROCESSES; at += 1) await expectDocuments(client, at, collectionId, load.known);
      await expectRecords(url, load.known);
      expectMessages(receiver, load.known);
      process.stderr.write(`${load.known.length} documents, ${receiver.messages.length} messages\n`);
    },
    TEST_MS,
  );
});
