import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { queueUpdate } from "../../../src/kb/jobs/change.ts";
import { runLeased } from "../../../src/kb/jobs/job.ts";
import { openLeases } from "../../../src/kb/queue/leases.ts";
import { queueCreate } from "../../../src/kb/resources/create.ts";
import type { KnowledgeBase } from "../../../src/kb/resources/knowledge-base.ts";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { UpdateBody } from "../../../src/wire/resource.ts";
import { wordsOnly } from "../store/store-fixture.ts";
import { clientOf } from "./queue-law.ts";

const clock = { aheadMs: 0 };
let store: Store;
let kb: KnowledgeBase;
let accountId: string;
let id: string;
/** Whether a change of the settings fails, for good or not, and how often it was tried. */
let settingsEnd: "done" | "fails" | "busy";
let tries: number;

const chunk: KnowledgeBase["ingest"]["chunk"] = async (text, { chunkSize }) => {
  if (text.includes("broken")) throw new Refusal("damaged_pdf", "The text cannot be read.");
  if (chunkSize !== 600) return wordsOnly(text);
  tries += 1;
  if (settingsEnd === "fails") throw new Refusal("damaged_pdf", "The settings cannot be used.");
  if (settingsEnd === "busy")
    throw new Refusal("ingest_busy", "The model is busy.", { retryAfterSeconds: 1 });
  return wordsOnly(text);
};

const change = (body: UpdateBody) => queueUpdate(kb, { accountId, id, body, context: {} });
const resource = () => store.records.resource({ accountId, id });
const waiting = () => store.queue.change({ accountId, id, nowMs: kb.steadyMs() });
async function run(): Promise<void> {
  const job = await kb.leases.take((await waiting())?.number ?? 0, true);
  if (job === undefined) throw new TypeError("no change waits");
  await runLeased(kb, job, 0);
}

beforeAll(async () => {
  store = await openSqliteStore();
  const client = clientOf(store, clock);
  const leases = openLeases(store.queue, "worker", client.steadyMs, () => undefined);
  const ingest = { chunk } as Partial<KnowledgeBase["ingest"]> as KnowledgeBase["ingest"]; // no files
  kb = { ...client, leases, ingest };
  ({ id: accountId } = await store.records.ensureAccount("one"));
});
afterAll(async () => {
  await kb.leases.close();
  await store.close();
});
beforeEach(async () => {
  [settingsEnd, tries] = ["done", 0];
  const body = { title: "Old", description: "", content: "words", collection_details: "fastest" } as const;
  ({ id } = await queueCreate(kb, { accountId, body, context: {} }));
  await run();
});

describe("a queued change that fails", () => {
  const both = { title: "New", settings: { chunkSize: 600 } };

  it("leaves a title and settings that were accepted apart from its text", async () => {
    await change({ content: "broken" });
    await change(both);
    await run();
    expect(await resource()).toMatchObject({ ...both, status: "error", content: "words" });
  });

  it("leaves a title that was accepted apart from its text, if the settings fail too", async () => {
    settingsEnd = "fails";
    await change({ content: "broken" });
    await change(both);
    await run();
    expect(await resource()).toMatchObject({
      title: "New",
      settings: { chunkSize: 1000 },
      status: "error",
      statusMessage: "The text cannot be read.",
    });
    expect(await waiting()).toBeUndefined();
  });

  it("leaves its title without another try of the settings, if it has no text", async () => {
    settingsEnd = "fails";
    await change(both);
    await run();
    expect(await resource()).toMatchObject({
      title: "New",
      settings: { chunkSize: 1000 },
      status: "error",
      statusMessage: "The settings cannot be used.",
    });
    expect(tries).toBe(1);
  });

  it("waits with what was accepted apart from its text, if that cannot be written yet", async () => {
    settingsEnd = "busy";
    await change({ content: "broken" });
    await change(both);
    await run();
    expect(await resource()).toMatchObject({ title: "Old", status: "queued" });
    expect((await waiting())?.dueMs).toBeGreaterThan(kb.steadyMs());
    settingsEnd = "done";
    await run();
    expect(await resource()).toMatchObject({ ...both, status: "error", content: "words" });
  });
});
