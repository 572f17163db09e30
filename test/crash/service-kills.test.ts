import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { checkUploads } from "../../src/kb/uploads/check-files.ts";
import { generateKey } from "../../src/kb/keys/keys.ts";
import { sqliteMaintenance } from "../../src/kb/store/sqlite/maintenance.ts";
import { killProcess, launchProcess, startProcess } from "../kb/service/process.ts";
import { type Chance, openChance, wholeNumberOf } from "./chance.ts";
import { actOn, type KillClient, openKillClient, OWNER, UnexpectedAnswer } from "./kill-client.ts";
import { editionIn, markerOf, openSlots, paragraphsOf, type Slot, textOf, TOP_K } from "./slots.ts";

/** `npm run test:kills` asks for 500. */
const KILLS = wholeNumberOf("KBSYNC_SERVICE_KILLS", 8);
const SEED = wholeNumberOf("KBSYNC_SEED", 1);
/** Clients that write, each to slots of its own, and clients that look. */
const WRITERS = 8;
const LOOKERS = 3;
const SLOTS = 48;
/** Kills after which a long run says how far it is. */
const TOLD_EVERY = 10;
const WAIT = { timeout: 60_000, interval: 50 };

let stateDir: string;
let key: string;
const chance = openChance(SEED);
const slots = openSlots(SLOTS);
/** What the whole run did. */
const sums = { kills: 0, inStart: 0, acknowledged: 0, checks: 0, openToOld: 0, openToNew: 0 };

beforeAll(() => {
  stateDir = mkdtempSync(join(tmpdir(), "kbsync-kills-"));
  key = generateKey();
});
afterAll(() => {
  rmSync(stateDir, { recursive: true });
});

describe(`a service that is killed ${KILLS} times, seed ${SEED}`, () => {
  it(
    "keeps every acknowledged write, and a document is there wholly or not at all at every check",
    async () => {
      while (sums.kills < KILLS) {
        if (chance.happens(0.1)) await killInStart();
        const { child, client } = await start();
        await expectKnown(client);
        await workUntilKilled(child, client);
        sums.kills += 1;
        expect(await problems()).toEqual([]);
        if (sums.kills % TOLD_EVERY === 0) notify();
      }
      const { child, client } = await start();
      await expectKnown(client);
      await client.close();
      await killProcess(child);
      expect(await problems()).toEqual([]);
      notify();
    },
    60_000 + KILLS * 30_000,
  );
});

function notify(): void {
  process.stdout.write(`${JSON.stringify(sums)}\n`);
}

async function start(): Promise<{ child: ChildProcess; client: KillClient }> {
  const { child, url } = await startProcess({ stateDir, key, isHashed: true });
  return { child, client: openKillClient(url, key, WRITERS + LOOKERS) };
}

/** A kill while the service starts: it may be reading its log, or be about to go on with queued work. */
async function killInStart(): Promise<void> {
  const child = launchProcess({ stateDir, key, isHashed: true });
  await delay(chance.below(2500));
  await killProcess(child);
  sums.kills += 1;
  sums.inStart += 1;
}

/** Everything in the state folder that does not fit together. */
async function problems(): Promise<readonly string[]> {
  const path = join(stateDir, "kb.sqlite");
  const report = sqliteMaintenance(path).check();
  const signal = AbortSignal.timeout(60_000);
  const files = await checkUploads(join(stateDir, "uploads"), () => sqliteMaintenance(path).uploads(), {
    signal,
  });
  return [...(report?.findings ?? []), ...files].map(({ message }) => message);
}

/** Writes and checks, many at once, until the process is gone. */
async function workUntilKilled(child: ChildProcess, client: KillClient): Promise<void> {
  const gone = once(child, "exit");
  let answers = 0;
  // Now after the first answers, now amid a flow of them; and then at any point of the work on the next ones.
  const killAfter = 1 + chance.below(90);
  const restMs = chance.next() * 12;
  const onAnswer = (): void => {
    sums.acknowledged += 1;
    if (++answers === killAfter) setTimeout(() => child.kill("SIGKILL"), restMs);
  };
  // Drawn beforehand for each client: the order of answers must not decide.
  const chances = Array.from({ length: WRITERS + LOOKERS }, () => openChance(chance.below(2 ** 31)));
  const work = chances.map((own, at) =>
    at < WRITERS ? write(client, own, slotsOf(at), onAnswer) : lookOn(client, own),
  );
  // A client that fails for another reason ends the round: the others would go on without the kill ever coming.
  for (const one of work) one.catch(() => child.kill("SIGKILL"));
  const ended = await Promise.allSettled(work);
  await gone;
  await client.close();
  for (const one of ended) {
    // A broken connection is what a kill looks like; anything else is a finding.
    if (one.status === "rejected" && (one.reason instanceof UnexpectedAnswer || one.reason instanceof Torn))
      throw one.reason;
  }
}

function slotsOf(writer: number): Slot[] {
  return slots.filter(({ number }) => number % WRITERS === writer);
}

async function write(client: KillClient, own: Chance, mine: Slot[], onAnswer: () => void): Promise<never> {
  for (;;) {
    const slot = own.pick(mine);
    const later = own.happens(0.25);
    if (slot.id === undefined) await actOn(client, slot, "create", later);
    else if (own.happens(0.2)) await actOn(client, slot, "delete", false);
    else if (own.happens(0.1)) await actOn(client, slot, "retitle", false);
    else await actOn(client, slot, "update", later);
    onAnswer();
  }
}

/** A document was seen by halves, in two editions, or older than what was acknowledged. */
class Torn extends Error {}

async function lookOn(client: KillClient, own: Chance): Promise<never> {
  for (;;) {
    const slot = own.pick(slots);
    if (slot.id === undefined) await delay(1);
    else await look(client, slot);
  }
}

/** One look at one document by a search, while it may be changing: all chunks of one edition, or none. */
async function look(client: KillClient, slot: Slot): Promise<void> {
  const { id } = slot;
  const { status, json } = await client.send("POST", "/rag/query", {
    doc_id: id,
    query: "moon",
    top_k: TOP_K,
  });
  sums.checks += 1;
  if (status === 404) return;
  if (status !== 200) throw new UnexpectedAnswer(`HTTP ${status}: ${JSON.stringify(json)}`);
  const results = json.results as { version: number; payload: { content: string } }[];
  expectWhole(slot, results);
}

function expectWhole(
  slot: Slot,
  results: readonly { readonly version: number; readonly payload: { readonly content: string } }[],
): void {
  if (results.length === 0) return;
  const editions = new Set(results.map(({ payload }) => editionIn(payload.content)?.edition));
  const versions = new Set(results.map(({ version }) => version));
  const [edition] = editions;
  const whole = Math.min(TOP_K, paragraphsOf(slot.number, edition ?? 0));
  if (editions.size !== 1 || versions.size !== 1 || edition === undefined || results.length !== whole) {
    const seen = `${results.length} results of ${whole}, editions ${[...editions].join(", ")}, versions ${[...versions].join(", ")}`;
    throw new Torn(`slot ${slot.number} (${slot.tier}): ${seen}`);
  }
}

/** After a start: every document is what was acknowledged, or what was open; from then on that is known. */
async function expectKnown(client: KillClient): Promise<void> {
  await vi.waitFor(async () => {
    expect((await client.queues()).ingest).toMatchObject({ waiting: 0, failed: 0 });
  }, WAIT);
  const collections = await client.send("GET", "/api/rag/collections");
  const listed = new Map<string, { slot: number; edition: number; content: string }>();
  for (const { _id } of collections.json.data.collections) {
    const where = `collectionId=${_id}&ownerId=${OWNER}`;
    const { status, json } = await client.send("GET", `/api/rag/resource/by-collection?${where}`);
    if (status === 404) continue;
    for (const { _id: id, content, metadata } of json.data.resources) {
      expect(metadata.status).toBe("chunked");
      listed.set(id, { ...(editionIn(content) ?? { slot: -1, edition: -1 }), content });
    }
  }
  for (const slot of slots) await settle(client, slot, listed);
  // What is left belongs to nobody: a create that was never acknowledged and came twice, or something out of thin air.
  expect([...listed.keys()]).toEqual([]);
}

/** Compares a slot with what the service lists, which loses it, and takes what it finds for known. */
async function settle(
  client: KillClient,
  slot: Slot,
  listed: Map<string, { slot: number; edition: number; content: string }>,
): Promise<void> {
  const id = slot.id ?? [...listed].find(([, { slot: number }]) => number === slot.number)?.[0];
  const found = id === undefined ? undefined : listed.get(id);
  const edition = found?.edition ?? 0;
  const may = slot.open === undefined ? [slot.edition] : [slot.edition, slot.open];
  expect(may, `edition of slot ${slot.number} (${slot.tier})`).toContain(edition);
  if (slot.open !== undefined) sums[edition === slot.open ? "openToNew" : "openToOld"] += 1;
  slot.edition = edition;
  slot.open = undefined;
  slot.id = found === undefined ? undefined : id;
  if (id === undefined || found === undefined) return;
  listed.delete(id);
  expect(found.content).toBe(textOf(slot.number, edition));
  const chunks = await client.send("GET", `/api/rag/resource/${id}/chunks`);
  expect(chunks.json.data.chunks).toHaveLength(paragraphsOf(slot.number, edition));
  const { json } = await client.send("POST", "/rag/query", { doc_id: id, query: "moon", top_k: TOP_K });
  expect(json.results).not.toEqual([]);
  expectWhole(slot, json.results);
  if (slot.tier !== "fastest") return;
  const old = await client.send("POST", "/rag/query", {
    doc_id: id,
    query: markerOf(slot.number, edition - 1),
    top_k: 1,
  });
  expect(old.json.results, "words of the edition before").toEqual([]);
}
