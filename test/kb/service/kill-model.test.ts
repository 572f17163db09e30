import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, vi } from "vitest";
import { checkStore } from "../../../src/kb/store/sqlite/check/check.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running } from "./running.ts";
import { lackingChunks } from "../store/embedded.ts";

const PROGRAM = fileURLToPath(new URL("./killed-model.ts", import.meta.url));
/** Together some eight steps of the background's work, of which each is one write. */
const DOCUMENTS = 8;
const PARAGRAPHS = 60;
const KILLS = 3;
/** When the model is asked for so many texts, the vectors of 128 are written: four batches, and the fifth is under way. */
const KILLED_AFTER_TEXTS = 140;
const SETTINGS = { strategy: "recursive", chunkSize: 100, chunkOverlap: 0 };
const PATIENCE = { timeout: 60_000, interval: 20 };

const word = (document: number, at: number): string => `word${document}of${at}`;
const paragraph = (document: number, at: number): string => `${word(document, at)} `.repeat(6).trim();
const embedder = (fingerprint: string, gate?: Promise<void>) => {
  const real = hashedEmbedder(fingerprint);
  return {
    ...real,
    embed: async (...given: Parameters<typeof real.embed>) => {
      await gate;
      return real.embed(...given);
    },
    close: async () => undefined,
  };
};

/** Lets a process bring the new model in for four batches, and kills it in the fifth. */
async function bringInAndKill(stateDir: string): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, stateDir, String(KILLED_AFTER_TEXTS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  createInterface(child.stdout).once("line", () => child.kill("SIGKILL"));
  expect(await gone).toEqual([null, "SIGKILL"]);
}

/** Ids and texts of all chunks, document by document. */
async function chunksOf(running: Running, ids: readonly string[]): Promise<unknown[]> {
  const all: unknown[] = [];
  for (const id of ids) all.push((await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data);
  return all;
}

it("after kill -9 during a change of the embedding model the old one serves, no vector is lost, and the new one takes over once", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "kbsync-kill-model-"));
  const first = await openRunning({ stateDir, openEmbedder: async () => embedder("one/64") });
  const ids: string[] = [];
  let collectionId = "";
  for (let document = 0; document < DOCUMENTS; document += 1) {
    const content = Array.from({ length: PARAGRAPHS }, (_, at) => paragraph(document, at)).join("\n\n");
    const body = createBody({ content, settings: SETTINGS, collection_details: "moderate", owner_id: "ann" });
    const { json } = await first.send("POST", "/api/rag/resource", { body });
    ids.push(json.data._id);
    collectionId = json.data.collectionId;
  }
  await vi.waitFor(
    async () => expect(await lackingChunks(first.store.index, "one/64")).toEqual([]),
    PATIENCE,
  );
  const before = await chunksOf(first, ids);
  const place = {
    accountId: (await first.store.records.ensureAccount("local")).id,
    collectionId,
    ownerId: "ann",
  };
  await first.close();

  const path = join(stateDir, "kb.sqlite");
  const lacking: number[] = [DOCUMENTS * PARAGRAPHS];
  for (let kill = 0; kill < KILLS; kill += 1) {
    await bringInAndKill(stateDir);
    const store = await openSqliteStore({ path });
    expect(await store.index.servingFingerprint(place)).toBe("one/64");
    const chunks = await lackingChunks(store.index, "two/64", { tiers: ["moderate"] });
    lacking.push(chunks.length);
    await store.close();
  }
  // Each process went on where the one before it was killed.
  expect(lacking).toEqual(lacking.toSorted((a, b) => b - a));
  expect(new Set(lacking).size).toBe(KILLS + 1);
  expect(lacking.at(-1)).toBeGreaterThan(0);

  const { promise, resolve } = Promise.withResolvers<void>();
  const last = await openRunning({
    stateDir,
    openEmbedder: async () => embedder("two/64", promise),
    openEarlierEmbedder: async () => embedder("one/64"),
  });
  const found = async (document: number, at: number): Promise<string[]> => {
    const body = { collection_id: collectionId, owner_id: "ann", query: word(document, at), top_k: 3 };
    const { json } = await last.send("POST", "/rag/query", { body });
    return json.results.map(({ payload }: { payload: { content: string } }) => payload.content);
  };
  const expectAllFound = async (): Promise<void> => {
    for (let document = 0; document < DOCUMENTS; document += 1) {
      for (const at of [0, PARAGRAPHS - 1]) {
        const texts = await found(document, at);
        expect(texts[0]).toBe(paragraph(document, at));
        expect(texts.filter((text) => text === paragraph(document, at))).toHaveLength(1);
      }
    }
  };
  // The new model is held, so these are the old one's.
  await expectAllFound();
  resolve();
  await vi.waitFor(
    async () => expect(await last.store.index.servingFingerprint(place)).toBe("two/64"),
    PATIENCE,
  );
  await expectAllFound();
  expect(await chunksOf(last, ids)).toEqual(before);
  expect(await lackingChunks(last.store.index, "two/64", { tiers: ["moderate"] })).toEqual([]);
  expect(last.log().split("searches use the new embedding model")).toHaveLength(2);
  await last.close();
  expect(checkStore(path)?.findings).toEqual([]);
  await rm(stateDir, { recursive: true });
});
