import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  openIdempotency,
  readIdempotencyKey,
  readStoredAnswer,
} from "../../../../src/kb/http/operation/idempotency.ts";
import { openSharedTurns } from "../../../../src/kb/queue/shared-turns.ts";
import { createBody, fileForm, openRunning } from "../../service/running.ts";
import type { Answered, Running } from "../../service/running.ts";
import { CommitUnknown } from "../../../../src/kb/store/commit-unknown.ts";
import { databaseFailure } from "../../../../src/kb/store/postgres/database/failures.ts";
import { withMethods } from "../../store/with-methods.ts";

const HOUR_MS = 60 * 60 * 1000;
/** No other process uses the store. */
const ALONE = openSharedTurns(undefined, "", () => expect.unreachable());

let running: Running;
let nowMs = Date.now();
beforeAll(async () => {
  running = await openRunning({ nowMs: () => nowMs });
});
afterAll(() => running.close());

const create = (key: string, change: object = {}): Promise<Answered> =>
  running.send("POST", "/api/rag/resource", {
    body: createBody(change),
    headers: { "idempotency-key": key },
  });

describe("Idempotency-Key", () => {
  it("answers a repeated create with the first answer, byte for byte, and creates nothing", async () => {
    const first = await create("c1", { owner_id: "idem" });
    const second = await create("c1", { owner_id: "idem" });
    expect(second).toMatchObject({ status: 201, text: first.text });
    const { json } = await running.send(
      "GET",
      `/api/rag/resource/by-collection?collectionId=${first.json.data.collectionId}&ownerId=idem`,
    );
    expect(json.data.resources).toHaveLength(1);
  });

  it("refuses a used key with another body with 409", async () => {
    await create("c2");
    const other = await create("c2", { title: "Another" });
    expect(other.status).toBe(409);
    expect(other.json.error.code).toBe("idempotency_conflict");
  });

  it("refuses a used key in another operation with 409", async () => {
    const { json } = await create("c3");
    const path = `/api/rag/resource/${json.data._id}`;
    const other = await running.send("PUT", path, {
      body: createBody(),
      headers: { "idempotency-key": "c3" },
    });
    expect(other.status).toBe(409);
  });

  it("creates one resource for many concurrent requests with one key", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => create("c4")));
    expect(new Set(answers.map(({ json }) => json.data._id)).size).toBe(1);
  });

  it("answers a repeated request with 409 and Retry-After if the first takes too long", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const idempotency = openIdempotency({ recall: async () => undefined }, ALONE, () => nowMs, 20);
    const request = { accountId: "a", key: "k", sha256: "x" };
    const first = idempotency.once(
      request,
      () => promise,
      async () => "again",
    );
    let isDoneTwice = false;
    const second = idempotency.once(
      request,
      async () => {
        isDoneTwice = true;
        return "twice";
      },
      async () => "again",
    );
    await expect(second).rejects.toMatchObject({
      refusal: "idempotency_in_progress",
      retryAfterSeconds: 10,
    });
    resolve("done");
    expect(await first).toBe("done");
    expect(
      await idempotency.once(
        request,
        async () => "next",
        async () => "again",
      ),
    ).toBe("next");
    // The refused request is not executed after its answer.
    expect(isDoneTwice).toBe(false);
  });

  it("allows the key of a refused request again", async () => {
    expect((await create("c5", { title: "" })).status).toBe(400);
    expect((await create("c5")).status).toBe(201);
  });

  it("answers a repeated update with the first answer, without chunking again", async () => {
    const { json } = await create("c6");
    const path = `/api/rag/resource/${json.data._id}`;
    const update = (): Promise<Answered> =>
      running.send("PUT", path, { body: { content: "New." }, headers: { "idempotency-key": "u1" } });
    const first = await update();
    expect(await update()).toMatchObject({ status: 200, text: first.text });
    expect((await running.send("GET", `${path}/chunks`)).json.data.version).toBe(2);
  });

  it("answers a repeated update of a deleted resource with 404, and stores nothing of its text", async () => {
    const made = await create("c10");
    const path = `/api/rag/resource/${made.json.data._id}`;
    const update = (): Promise<Answered> =>
      running.send("PUT", path, {
        body: { content: "Private words." },
        headers: { "idempotency-key": "u3" },
      });
    await update();
    await running.send("DELETE", path);
    expect(await update()).toMatchObject({ status: 404, json: { error: { code: "resource_not_found" } } });
    const { id } = await running.store.records.ensureAccount("local");
    expect((await running.store.records.recall(id, "u3", nowMs))?.body).not.toContain("Private");
    // The answer to a create has no text.
    expect(await create("c10")).toMatchObject({ status: 201, text: made.text });
  });

  it("notes only the id of a long record and answers with its current state", async () => {
    const { json } = await create("c8");
    const path = `/api/rag/resource/${json.data._id}`;
    const content = "The moon pulls the sea. ".repeat(10_000);
    const update = (): Promise<Answered> =>
      running.send("PUT", path, { body: { content }, headers: { "idempotency-key": "u2" } });
    const first = await update();
    expect(first).toMatchObject({ status: 200, json: { data: { content } } });
    expect(await update()).toMatchObject({ status: 200, json: first.json });
    await running.send("PUT", path, { body: { title: "Later" } });
    expect((await update()).json).toMatchObject({
      message: "Resource updated successfully",
      data: { title: "Later", content },
    });
    expect((await running.send("GET", `${path}/chunks`)).json.data.version).toBe(2);
    const { id } = await running.store.records.ensureAccount("local");
    const stored = await running.store.records.recall(id, "u2", nowMs);
    expect(stored?.body.length).toBeLessThan(100);
    await running.send("DELETE", path);
    expect((await update()).status).toBe(404);
  });

  it("answers a repeated create with a long description with the record", async () => {
    const description = "\u0001".repeat(9000);
    const first = await create("c9", { description });
    expect(await create("c9", { description })).toMatchObject({ status: 201, json: first.json });
  });

  it("answers a repeated upload with the first file_url, whatever its boundary, and stores one file", async () => {
    const upload = (text: string): Promise<Answered> =>
      running.send("POST", "/image/processing/upload", {
        body: fileForm(text),
        headers: { "idempotency-key": "f1" },
      });
    const first = await upload("some text");
    const files = await readdir(join(running.stateDir, "uploads"));
    expect(await upload("some text")).toMatchObject({ status: 200, text: first.text });
    expect((await upload("other text")).status).toBe(409);
    expect(await readdir(join(running.stateDir, "uploads"))).toEqual(files);
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it("forgets a key after 24 hours", async () => {
    const first = await create("c7");
    nowMs += 23 * HOUR_MS;
    expect((await create("c7")).json.data._id).toBe(first.json.data._id);
    nowMs += 2 * HOUR_MS;
    const later = await create("c7");
    expect(later.status).toBe(201);
    expect(later.json.data._id).not.toBe(first.json.data._id);
  });

  it.each(["!", "~", "x".repeat(255)])("accepts the key %j", async (key) => {
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody(),
      headers: { "idempotency-key": key },
    });
    expect(answer.status).toBe(201);
  });

  it.each(["", "a b", "ü", "x".repeat(256)])("refuses the key %j with 400", async (key) => {
    const header = Buffer.from(key).toString("latin1");
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody(),
      headers: { "idempotency-key": header },
    });
    expect(answer.status).toBe(400);
    expect(answer.json.error.code).toBe("invalid_header");
  });
});

describe("Idempotency-Key of an upload", () => {
  it("answers a repeated upload once its bytes can be moved to their folder", async () => {
    let block: string | undefined;
    const own = await openRunning({
      wrapStore: (store) =>
        withMethods(store, {
          records: {
            addFile: async (file, sameTransaction) => {
              block = join(own.stateDir, "uploads", file.token);
              // A non-empty folder with the file's name makes the rename fail.
              await mkdir(join(block, "in the way"), { recursive: true });
              return store.records.addFile(file, sameTransaction);
            },
          },
        }),
    });
    try {
      const send = (): Promise<Answered> =>
        own.send("POST", "/image/processing/upload", {
          body: fileForm("precious"),
          headers: { "idempotency-key": "u" },
        });
      expect((await send()).status).toBe(500);
      expect((await send()).status).toBe(500);
      await rm(block ?? "", { recursive: true });
      const { status, json } = await send();
      expect(status).toBe(200);
      expect((await own.send("GET", json.file_url)).text).toBe("precious");
      expect(await readdir(join(own.stateDir, "uploads", "incoming"))).toEqual([]);
      await rm(block ?? "");
      expect(await send()).toMatchObject({ status: 404, json: { error: { code: "file_not_found" } } });
    } finally {
      await own.close();
    }
  });

  it("loses no file whose commit nobody knows the outcome of", async () => {
    let isLost = true;
    const own = await openRunning({
      wrapStore: (store) =>
        withMethods(store, {
          records: {
            addFile: async (file, sameTransaction) => {
              await store.records.addFile(file, sameTransaction);
              if (!isLost) return;
              isLost = false;
              throw databaseFailure(new CommitUnknown("the connection was lost"), "a database");
            },
          },
        }),
    });
    try {
      const send = (): Promise<Answered> =>
        own.send("POST", "/image/processing/upload", {
          body: fileForm("precious"),
          headers: { "idempotency-key": "u" },
        });
      expect(await send()).toMatchObject({ status: 503, json: { error: { code: "store_busy" } } });
      const { status, json } = await send();
      expect(status).toBe(200);
      expect((await own.send("GET", json.file_url)).text).toBe("precious");
      expect(await readdir(join(own.stateDir, "uploads", "incoming"))).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

describe("the note of a request", () => {
  const read = (body: string) => readStoredAnswer({ bodySha256: "", status: 201, body });

  it.each([
    [
      "a resource without its text",
      '{"resource":{"id":"a"}}',
      { kind: "resource", resource: { id: "a", content: "" } },
    ],
    [
      "a resource with its text",
      '{"resource":{"id":"a","content":"b"}}',
      { kind: "resource", resource: { id: "a", content: "b" } },
    ],
    ["a reference", '{"resourceId":"a"}', { kind: "reference", resourceId: "a" }],
    ["a file", '{"file":{"token":"t"}}', { kind: "file", file: { token: "t" } }],
    ["a question", '{"messageId":"m"}', { kind: "question", messageId: "m" }],
  ])("the note of a request is read: %s", (_name, body, note) => {
    expect(read(body)).toEqual(note);
  });

  it("the note of a request belongs to one key of one account, and each runs by itself", async () => {
    const idempotency = openIdempotency({ recall: async () => undefined }, ALONE, () => nowMs, 20);
    const never = new Promise<string>(() => undefined);
    const run = (accountId: string, key: string, work: () => Promise<string>): Promise<string> =>
      idempotency.once({ accountId, key, sha256: "s" }, work, () => never);
    void run("a", "k", () => never).catch(() => undefined);
    await Promise.all([run("b", "k", async () => "one"), run("a", "other", async () => "two")]);
    await expect(run("a", "k", () => expect.unreachable())).rejects.toMatchObject({
      refusal: "idempotency_in_progress",
      retryAfterSeconds: 10,
    });
  });

  it("the note of a request is not found under several keys in one header", () => {
    expect(readIdempotencyKey(undefined)).toBeUndefined();
    expect(() => readIdempotencyKey(["a", "a"])).toThrow(
      expect.objectContaining({ refusal: "invalid_header" }),
    );
  });
});
