import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { generateKey } from "../../../../../src/kb/keys/keys.ts";
import { openRandom } from "../../../../simulate/virtual/random.ts";
import { type ServiceProcess, startProcess } from "../../../service/process.ts";
import { openReceiver, type Receiver } from "../../../webhooks/receiver.ts";
import type { Cluster } from "../cluster.ts";
import { isSkipped, newCluster, newStandby } from "../databases.ts";
import { expectDocuments, expectMessages, expectRecords } from "./agreement.ts";
import { openClient, startLoad, type Client } from "./load.ts";
import { openSwitch, type Switch } from "./switch.ts";

const DATABASE = "kbsync";
const PROCESSES = 2;
const CLIENTS = 4;
/** On a busy machine; usually ten seconds. */
const TEST_MS = 180_000;
const WAIT = { timeout: 60_000, interval: 300 };
const socketOf = (cluster: Cluster): string => join(cluster.folder, ".s.PGSQL.5432");

describe.skipIf(isSkipped())("a failover to a standby", () => {
  const key = generateKey();
  const clusters: Cluster[] = [];
  const processes: ServiceProcess[] = [];
  let stateDir: string;
  let receiver: Receiver;
  let balancer: Switch;
  let client: Client;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "kbsync-failover-"));
    receiver = await openReceiver();
    const primary = newCluster();
    clusters.push(primary);
    primary.sql(`CREATE DATABASE ${DATABASE}`);
    clusters.push(newStandby(primary));
    balancer = await openSwitch(socketOf(primary));
    const database = `postgres://postgres@127.0.0.1:${balancer.port}/${DATABASE}`;
    for (let at = 0; at < PROCESSES; at += 1)
      processes.push(await startProcess({ stateDir: join(stateDir, String(at)), key, database }));
    client = openClient((at) => processes[at % PROCESSES]?.url ?? "", key);
  }, TEST_MS);
  afterAll(async () => {
    for (const { child } of processes) child.kill("SIGKILL");
    await client.close();
    await receiver.close();
    await balancer.close();
    for (const cluster of clusters) await cluster.remove();
    await rm(stateDir, { recursive: true });
  });

  it(
    "a failover to a standby that confirms each commit loses nothing that was answered, and does nothing twice",
    async () => {
      const [primary, standby] = clusters;
      if (primary === undefined || standby === undefined) throw new Error("unreachable: both were started");
      const seed = process.env["KBSYNC_TEST_SEED"] ?? String(Date.now());
      process.stderr.write(`a failover: KBSYNC_TEST_SEED=${seed}\n`);
      const random = openRandom(seed);
      await vi.waitFor(
        () => expect(primary.sql("SELECT sync_state FROM pg_stat_replication").trim()).toBe("sync"),
        WAIT,
      );
      await client.send(0, "POST", "/v1/webhooks", { url: `${receiver.url}/` });
      const { data } = (await client.send(0, "GET", "/api/rag/collections")).json;
      const collectionId: string = data.collections.find(
        (each: { details: string }) => each.details === "fastest",
      )._id;
      const load = startLoad(client, collectionId, { services: PROCESSES, clients: CLIENTS, random });
      await vi.waitFor(() => expect(load.known.length).toBeGreaterThan(20), WAIT);

      primary.stop("immediate");
      await sleep(random.between(0, 1000));
      standby.promote();
      balancer.lead(socketOf(standby));
      const before = load.known.length;
      await vi.waitFor(
        () => expect(load.known.length, `after: ${load.problems[0]}`).toBeGreaterThan(before + 20),
        WAIT,
      );
      await load.stop();
      await vi.waitFor(
        () => expect(standby.sql("SELECT count(*) FROM job WHERE NOT is_failed", DATABASE).trim()).toBe("0"),
        { ...WAIT, timeout: 120_000 },
      );

      expect(load.problems).toEqual([]);
      for (let at = 0; at < PROCESSES; at += 1) await expectDocuments(client, at, collectionId, load.known);
      await expectRecords(standby.url(DATABASE), load.known);
      expectMessages(receiver, load.known);
      process.stderr.write(`${load.known.length} documents, ${receiver.messages.length} messages\n`);
    },
    TEST_MS,
  );
});
