import { afterAll, beforeAll, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";

let running: Running;
let textsRead = 0;
beforeAll(async () => {
  running = await openRunning({
    wrapStore: (store) => ({
      ...store,
      resource: (at) => {
        textsRead += 1;
        return store.resource(at);
      },
    }),
  });
});
afterAll(() => running.close());

it("a search in one document does not read its text, which may be long", async () => {
  const made = await running.send("POST", "/api/rag/resource", { body: createBody() });
  textsRead = 0;
  const body = { query: "moon", doc_id: made.json.data._id };
  const found = await running.send("POST", "/rag/query", { body });
  expect(found.json.results).toHaveLength(1);
  expect(textsRead).toBe(0);
});
