import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Batch } from "../../../src/wire/batch.ts";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

let running: Running;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

const create = async (owner_id: string, more: object = {}): Promise<string> => {
  const body = createBody({ owner_id, ...more });
  const { data } = (await running.send("POST", "/api/rag/resource", { body })).json;
  collectionId = data.collectionId;
  return data._id;
};
const start = (kind: string, ids: readonly string[]): Promise<Answered> =>
  running.send("POST", "/v1/batches", { body: { kind, ids } });
const read = async (id: string): Promise<Batch & { failures: unknown[] }> =>
  (await running.send("GET", `/v1/batches/${id}`)).json.data;
const ended = async (id: string): Promise<void> => {
  await expect.poll(async () => (await read(id)).state, { timeout: 20_000 }).not.toBe("working");
};
const countOf = async (ownerId: string): Promise<number> => {
  const query = new URLSearchParams({ collectionId, ownerId });
  return (await running.send("GET", `/api/rag/documents?${query.toString()}`)).json.data.total;
};

describe("batches", () => {
  it("a batch deletes documents after the answer, each once, and counts those that are gone as done", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => create("many")));
    await running.send("DELETE", `/api/rag/resource/${ids[3]}`);
    const accepted = await start("delete", [...ids, ids[0] ?? "", "f".repeat(24)]);
    const id = accepted.json.data._id;
    expect(accepted).toMatchObject({
      status: 202,
      headers: { location: `/v1/batches/${id}` },
      json: { data: { kind: "delete", total: 21 } },
    });
    await ended(id);
    expect(await read(id)).toMatchObject({ state: "done", total: 21, done: 21, failed: 0, failures: [] });
    expect(await countOf("many")).toBe(0);
    const { batches } = (await running.send("GET", "/v1/batches")).json.data;
    expect(batches[0]).toMatchObject({ _id: id, state: "done" });
  });

  it("batches are started once under an Idempotency-Key, whose repetition gets the first answer byte for byte", async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => create("once")));
    const headers = { "idempotency-key": "batch-1" };
    const post = (given: readonly string[]): Promise<Answered> =>
      running.send("POST", "/v1/batches", { body: { kind: "delete", ids: given }, headers });
    const answers = await Promise.all(Array.from({ length: 6 }, () => post(ids)));
    const first = answers[0];
    expect(first).toMatchObject({ status: 202, json: { data: { total: 12, done: 0, state: "working" } } });
    const id: string = first?.json.data._id;
    await ended(id);
    for (const again of [...answers, await post(ids)]) {
      expect(again).toMatchObject({ status: 202, text: first?.text });
      expect(again.headers["location"]).toBe(`/v1/batches/${id}`);
    }
    const { batches } = (await running.send("GET", "/v1/batches")).json.data;
    expect(batches.filter(({ total }: Batch) => total === 12)).toHaveLength(1);
    expect(await post(ids.slice(1))).toMatchObject({
      status: 409,
      json: { error: { code: "idempotency_conflict" } },
    });
  });

  it("batches leave documents of other accounts alone, and say nothing of them", async () => {
    const id = await create("mine");
    const key = await running.issueKey("someone-else", ["write"]);
    const body = { kind: "delete", ids: [id] };
    const batch = (await running.send("POST", "/v1/batches", { key, body })).json.data._id;
    const state = async () => (await running.send("GET", `/v1/batches/${batch}`, { key })).json.data;
    await expect.poll(async () => (await state()).state).toBe("done");
    expect(await state()).toMatchObject({ done: 1, failed: 0 });
    expect(await countOf("mine")).toBe(1);
  });

  it("batches take documents in again that failed, and report why others cannot be", async () => {
    const { store } = running;
    const accountId = (await store.records.accounts()).find(({ name }) => name === "local")?.id ?? "";
    const good = await create("retry", { title: "good" });
    const bad = await create("retry", { title: "bad" });
    const nowIso = new Date().toISOString();
    // Due tomorrow, so that it fails here and not by the runner.
    const nowMs = Date.now() + 24 * 60 * 60 * 1000;
    const limits = { body: '{"update":{}}', nowMs, jobsMax: 10, charsMax: 1000 };
    await store.records.enqueueUpdate({ accountId, id: bad, nowIso }, limits);
    for (const { number, name } of await store.queue.due({ queue: "ingest", nowMs, perLine: 1 })) {
      const job = name === bad ? await store.queue.lease({ number, worker: "w", nowMs }) : undefined;
      if (job !== undefined)
        await store.records.failJob(job, { code: "model_failed", message: "No." }, nowIso);
    }
    const statusOf = async (id: string): Promise<string> =>
      (await running.send("GET", `/api/rag/resource/${id}`)).json.data.metadata.status;
    expect(await statusOf(bad)).toBe("error");
    const { _id } = (await start("retry", [good, bad])).json.data;
    await ended(_id);
    expect(await read(_id)).toMatchObject({ state: "done", done: 2, failed: 0 });
    await expect.poll(() => statusOf(bad)).toBe("chunked");
    const { version } = (await running.send("GET", `/api/rag/resource/${good}/chunks`)).json.data;
    expect(version).toBe(1);
  });

  it("batches can be stopped, and keep what they did", async () => {
    const ids = await Promise.all(Array.from({ length: 60 }, () => create("stop")));
    const { _id } = (await start("delete", ids)).json.data;
    const stopped = await running.send("POST", `/v1/batches/${_id}/stop`);
    expect(stopped.status).toBe(200);
    await expect.poll(async () => (await read(_id)).done + (await countOf("stop"))).toBe(60);
    expect((await running.send("POST", `/v1/batches/${"e".repeat(24)}/stop`)).status).toBe(404);
  });

  it.each([
    ["no documents", { kind: "delete", ids: [] }, "ids"],
    ["too many", { kind: "delete", ids: Array.from({ length: 5001 }, () => "a".repeat(24)) }, "ids"],
    ["what is no id", { kind: "delete", ids: ["../x"] }, "ids[0]"],
    ["another kind", { kind: "erase", ids: ["a".repeat(24)] }, "kind"],
  ])("a batch is refused for %s, with the field", async (_what, body, field) => {
    expect(await running.send("POST", "/v1/batches", { body })).toMatchObject({
      status: 400,
      json: { error: { field } },
    });
  });
});
