import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { generateKey } from "../../../../../src/kb/keys/keys.ts";
import { openRandom, type Random } from "../../../../simulate/virtual/random.ts";
import { type ServiceProcess, startProcess } from "../../../service/process.ts";
import { openReceiver, type Receiver } from "../../../webhooks/receiver.ts";
import type { Cluster } from "../cluster.ts";
import { isSkipped, newCluster } from "../databases.ts";
import { expectDocuments, expectMessages, expectRecords } from "./agreement.ts";
import { openClient, startLoad, type Client } from "./load.ts";

const DATABASE = "kbsync";
const PROCESSES = 4;
const CLIENTS = 6;
/** On a busy machine; usually half a minute. */
const TEST_MS = 180_000;
const WAIT = { timeout: 60_000, interval: 300 };

describe.skipIf(isSkipped())("four processes on one database", () => {
  let cluster: Cluster;
  let stateDir: string;
  let receiver: Receiver;
  let client: Client;
  const key = generateKey();
  const processes: ServiceProcess[] = [];

  const start = async (at: number): Promise<void> => {
    const own = join(stateDir, String(at));
    processes[at] = await startProcess({ stateDir: own, key, database: cluster.url(DATABASE) });
  };
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "kbsync-processes-"));
    receiver = await openReceiver();
    cluster = newCluster();
    cluster.sql(`CREATE DATABASE ${DATABASE}`);
    await Promise.all(Array.from({ length: PROCESSES }, (_, at) => start(at)));
    client = openClient((at) => processes[at % PROCESSES]?.url ?? "", key);
  }, TEST_MS);
  afterAll(async () => {
    for (const { child } of processes) child.kill("SIGKILL");
    await client.close();
    await receiver.close();
    await cluster.remove();
    await rm(stateDir, { recursive: true });
  });

  /** What a process that does not go on holds ends by time; this is that time, for all. */
  const endHolds = (): void => {
    const ends = "UPDATE job SET due_ms = 0 WHERE worker IS NOT NULL; UPDATE claim SET ends_at = now()";
    cluster.sql(ends, DATABASE);
  };
  const faults: Readonly<Record<string, (random: Random) => Promise<void>>> = {
    "kill -9 of a process": async (random) => {
      const at = random.below(PROCESSES);
      const child = processes[at]?.child;
      child?.kill("SIGKILL");
      endHolds();
      await start(at);
    },
    "the end of all connections": async () => {
      const end =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'kbsync%'";
      cluster.sql(end);
    },
    "kill -9 of a backend of the database": async () => {
      // Also as another user than the server's, which root may be. The server ends all other backends, and recovers.
      const query = "SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'kbsync'";
      const pid = Number(cluster.sql(query));
      // The pid 0 would mean this process and its group.
      expect(pid).toBeGreaterThan(1);
      process.kill(pid, "SIGKILL");
      const others = `SELECT count(*) FROM pg_stat_activity WHERE pid = ${pid}`;
      await vi.waitFor(() => expect(cluster.sql(others).trim()).toBe("0"), WAIT);
    },
    "a crash of the database": async (random) => {
      cluster.stop("immediate");
      await sleep(random.between(0, 1000));
      cluster.start();
    },
    "a stop of a process past its leases": async (random) => {
      const child = processes[random.below(PROCESSES)]?.child;
      child?.kill("SIGSTOP");
      await sleep(random.between(100, 500));
      endHolds();
      await sleep(random.between(500, 1500));
      child?.kill("SIGCONT");
    },
  };
  const read = async (at: number, path: string) => (await client.send(at, "GET", path)).json;
  const waitingJobs = (): number =>
    Number(cluster.sql("SELECT count(*) FROM job WHERE NOT is_failed", DATABASE));

  it(
    "four processes on one database lose nothing that was answered, do nothing twice, and read what the others wrote",
    async () => {
      const seed = process.env["KBSYNC_TEST_SEED"] ?? String(Date.now());
      process.stderr.write(`four processes on one database: KBSYNC_TEST_SEED=${seed}\n`);
      const random = openRandom(seed);
      await client.send(0, "POST", "/v1/webhooks", { url: `${receiver.url}/` });
      const { data } = await read(0, "/api/rag/collections");
      const collectionId: string = data.collections.find(
        (each: { details: string }) => each.details === "fastest",
      )._id;
      const load = startLoad(client, collectionId, { services: PROCESSES, clients: CLIENTS, random });
      await sleep(1500);
      const calm = receiver.messages.map(({ id }) => id);
      expect(calm.length).toBeGreaterThan(0);
      expect(new Set(calm).size).toBe(calm.length);

      const names = Object.keys(faults).toSorted(() => random.next() - 0.5);
      for (const name of names) {
        const before = load.known.length;
        await faults[name]?.(random);
        // Work goes on by itself.
        await vi.waitFor(() => {
          expect(load.known.length, `after ${name}: ${load.problems[0]}`).toBeGreaterThan(before);
        }, WAIT);
        await sleep(random.between(500, 1500));
      }
      await load.stop();
      endHolds();
      await vi.waitFor(() => expect(waitingJobs()).toBe(0), WAIT);

      expect(load.problems).toEqual([]);
      for (let at = 0; at < PROCESSES; at += 1) await expectDocuments(client, at, collectionId, load.known);
      await expectRecords(cluster.url(DATABASE), load.known);
      expectMessages(receiver, load.known);
      process.stderr.write(`${load.known.length} documents, ${receiver.messages.length} messages\n`);
    },
    TEST_MS,
  );
});
