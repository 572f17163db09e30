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
  it.each([
    { name: "reads no resource", method: "GET", path: () => `/api/rag/resource/${resource._id}` },
    { name: "reads no chunks", method: "GET", path: () => `/api/rag/resource/${resource._id}/chunks` },
    {
      name: "updates nothing",
      method: "PUT",
      path: () => `/api/rag/resource/${resource._id}`,
      body: () => ({ title: "x" }),
    },
    { name: "deletes nothing", method: "DELETE", path: () => `/api/rag/resource/${resource._id}` },
    {
      name: "lists nothing",
      method: "GET",
      path: () =>
        `/api/rag/resource/by-collection?collectionId=${resource.collectionId}&ownerId=${resource.ownerId}`,
    },
    {
      name: "searches no document",
      method: "POST",
      path: () => "/rag/query",
      body: () => ({ query: "moon", doc_id: resource._id }),
    },
    {
      name: "searches no collection",
      method: "POST",
      path: () => "/rag/query",
      body: () => ({ query: "moon", collection_id: resource.collectionId, owner_id: resource.ownerId }),
    },
  ])(
    "a key of another account $name: 404, as if the resource did not exist",
    async ({ method, path, body }) => {
      const answer = await running.send(method, path(), {
        key: foreign,
        ...(body === undefined ? {} : { body: body() }),
      });
      expect(answer.status).toBe(404);
      expect(answer.text).not.toContain("moon");
      const own = await running.send("GET", `/api/rag/resource/${resource._id}`);
      expect(own.json.data).toMatchObject({ title: "Tides", isDeleted: false });
    },
  );

  it("refuses to create a resource from another account's upload with 400", async () => {
    const body = createBody({ content: undefined, url: fileUrl });
    const answer = await running.send("POST", "/api/rag/resource", { key: foreign, body });
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({ code: "invalid_field", field: "url" });
  });

  it("shows a key only the collections of its account", async () => {
    const { json } = await running.send("GET", "/api/rag/collections", { key: foreign });
    expect(json.data.collections.map((collection: { resources: number }) => collection.resources)).toEqual([
      0, 0, 0,
    ]);
    expect(JSON.stringify(json)).not.toContain(resource.collectionId);
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

describe("scopes", () => {
  const WRITES = [
    { method: "POST", path: "/api/rag/resource" },
    { method: "PUT", path: "/api/rag/resource/0123456789abcdef01234567" },
    { method: "DELETE", path: "/api/rag/resource/0123456789abcdef01234567" },
    { method: "POST", path: "/image/processing/upload" },
  ];
  const READS = [
    { method: "GET", path: "/api/rag/resource/0123456789abcdef01234567" },
    { method: "GET", path: "/api/rag/resource/0123456789abcdef01234567/chunks" },
    { method: "GET", path: "/api/rag/resource/by-collection?collectionId=a&ownerId=b" },
    { method: "GET", path: "/api/rag/collections" },
    { method: "POST", path: "/rag/query" },
  ];
  const CHATS = [
    { method: "POST", path: "/api/v2/model/chat/completion" },
    { method: "POST", path: "/files/upload" },
  ];

  it.each([
    { scope: "read", others: [...WRITES, ...CHATS] },
    { scope: "write", others: [...READS, ...CHATS] },
    { scope: "chat", others: [...READS, ...WRITES] },
  ] as const)(
    "refuses a key with only the scope $scope with 403 in all other operations",
    async ({ scope, others }) => {
      const key = await running.issueKey("local", [scope]);
      for (const { method, path } of others) {
        const answer = await running.send(method, path, { key });
        const { code, hint } = answer.json.error;
        expect({ path, status: answer.status, code, hint }).toEqual({
          path,
          status: 403,
          code: "scope_missing",
          hint: `It has: ${scope}.`,
        });
      }
    },
  );

  it("admits a key with the scope admin to every operation", async () => {
    const key = await running.issueKey("local", ["admin"]);
    for (const { method, path } of [...WRITES, ...READS, ...CHATS]) {
      expect((await running.send(method, path, { key })).status).not.toBe(403);
    }
  });

  it("refuses a request without a key with 401 in every operation", async () => {
    for (const { method, path } of [...WRITES, ...READS, ...CHATS]) {
      expect((await running.send(method, path, { key: null })).status).toBe(401);
    }
  });
});

describe("keys", () => {
  it("refuses an expired key and accepts one before its expiry", async () => {
    const key = await running.issueKey("local", ["read"], new Date(Date.now() - 1000).toISOString());
    const answer = await running.send("GET", "/api/rag/collections", { key });
    expect(answer.status).toBe(401);
    expect(answer.json.error.code).toBe("key_expired");
    const later = await running.issueKey("local", ["read"], new Date(Date.now() + 60_000).toISOString());
    expect((await running.send("GET", "/api/rag/collections", { key: later })).status).toBe(200);
  });

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
