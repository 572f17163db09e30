import { afterEach, expect, it } from "vitest";
import { openUrgent } from "../../../src/kb/http/urgent.ts";
import { createBody, openRunning, type Running } from "../service/running.ts";

let running: Running | undefined;
afterEach(() => running?.close());

it("is under way until the last work is over, however that ends", async () => {
  const urgent = openUrgent();
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const works = [urgent.during(() => first.promise), urgent.during(() => second.promise)];
  expect(urgent.isUnderWay()).toBe(true);
  first.reject(new Error("broken"));
  await expect(works[0]).rejects.toThrow("broken");
  expect(urgent.isUnderWay()).toBe(true);
  second.resolve("done");
  expect(await works[1]).toBe("done");
  expect(urgent.isUnderWay()).toBe(false);
});

it("a bulk create goes on beside a search that does not end", async () => {
  const reached = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  running = await openRunning({
    wrapStore: (store) => ({
      ...store,
      evidence: async (query) => {
        reached.resolve();
        await end.promise;
        return await store.evidence(query);
      },
    }),
  });
  const made = await running.send("POST", "/api/rag/resource", { body: createBody() });
  const search = running.send("POST", "/rag/query", { body: { doc_id: made.json.data._id, query: "words" } });
  await reached.promise;
  const lines = await running.send("POST", "/api/rag/resources/bulk", {
    body: "x\n".repeat(900),
    headers: { "content-type": "application/x-ndjson" },
  });
  expect(lines.text.trimEnd().split("\n")).toHaveLength(901);
  end.resolve();
  expect((await search).status).toBe(200);
});
