import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";

let running: Running;
let foreign: string;
let resource: { _id: string; collectionId: string; ownerId: string };
let fileUrl: string;

beforeAll(async () => {
  running = await openRunning();
  foreign = await running.issueKey("someone-else");
  resource = (await running.send("POST", "/api/rag/resource", { body: createBody() })).json.data;
  fileUrl = (await running.send("POST", "/image/processing/upload", { body: fileForm("secret") })).json
    .file_url;
});
afterAll(() => running.close());

describe("a key of another account", () => {
  it("a key of another account searches no collection: 404, as if it did not exist", async () => {
    const body = { query: "moon", collection_id: resource.collectionId, owner_id: resource.ownerId };
    expect((await running.send("POST", "/rag/query", { key: foreign, body })).status).toBe(404);
  });

  it("creates separate resources for two accounts with the same idempotency key", async () => {
    const headers = { "idempotency-key": "shared" };
    const one = await running.send("POST", "/api/rag/resource", { headers, body: createBody() });
    const two = await running.send("POST", "/api/rag/resource", {
      key: foreign,
      headers,
      body: createBody(),
    });
    expect(two.status).toBe(201);
    expect(two.json.data._id).not.toBe(one.json.data._id);
  });
});

describe("keys", () => {
  it("never logs keys, file tokens or contents", async () => {
    await running.send("GET", fileUrl, { key: null });
    await running.send("GET", "/api/rag/collections", { key: "kb_wrong-but-secret" });
    await running.send("POST", "/api/rag/resource", { body: '{"title":"private words' });
    expect(running.log()).toContain('"msg":"request"');
    const token = new URL(fileUrl).pathname.split("/")[2] ?? "";
    expect(token).toHaveLength(43);
    for (const secret of [
      running.key,
      foreign,
      "kb_wrong-but-secret",
      token,
      "private words",
      "The moon pulls",
    ]) {
      expect(running.log()).not.toContain(secret);
    }
  });
});
