import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { asyncPreference, etagOf, isKnown, preconditionOf } from "../../../../src/kb/http/body/conditions.ts";
import { createBody, openRunning } from "../../service/running.ts";
import type { Answered, Running, Sent } from "../../service/running.ts";
import { withMethods } from "../../store/with-methods.ts";
import { WAIT } from "../../../wait.ts";

const RESOURCE = { id: "a".repeat(24), revision: 3 };
const TAG = etagOf(RESOURCE);

describe("conditions of requests", () => {
  it.each([
    ["the tag itself", TAG, true],
    ["one of several", `"x", ${TAG} ,"y"`, true],
    ["anything", "*", true],
    ["another tag", '"x"', false],
    ["the weak form of the tag", `W/${TAG}`, false],
  ])("evaluates If-Match with %s", (_name, header, matches) => {
    expect(preconditionOf({ "if-match": header })?.(RESOURCE)).toBe(matches);
  });

  it.each([
    ["the tag itself", TAG, true],
    ["its weak form", `W/${TAG}`, true],
    ["anything", "*", true],
    ["another", '"x"', false],
  ])("evaluates If-None-Match with %s", (_name, header, known) => {
    expect(isKnown({ "if-none-match": header }, TAG)).toBe(known);
  });

  it.each(["x", '"open', '"a" "b"', "W/x"])("refuses the malformed tag %s", (header) => {
    expect(() => preconditionOf({ "if-match": header })).toThrow(/If-Match/);
  });

  it.each([
    ["respond-async", { waitMs: 0 }],
    ["wait=10, Respond-Async", { waitMs: 10_000 }],
    ['respond-async, wait="2"', { waitMs: 2000 }],
    ["respond-async, wait=3600", { waitMs: 50_000 }],
    ["respond-async, wait=soon", { waitMs: 0 }],
    ["respond-async; foo=bar", { waitMs: 0 }],
    ["respond-asynchronously", undefined],
    ["wait=10", undefined],
    ["return=minimal", undefined],
  ])("reads Prefer: %s", (prefer, wanted) => {
    expect(asyncPreference({ prefer })).toEqual(wanted);
  });
});

describe("ETag", () => {
  let running: Running;
  /** Called before each change is written. */
  let beforeWrite: (id: string) => Promise<unknown> = async () => undefined;
  beforeAll(async () => {
    running = await openRunning({
      wrapStore: (store) =>
        withMethods(store, {
          records: {
            updateResource: async (...given) => {
              await beforeWrite(given[0].id);
              return store.records.updateResource(...given);
            },
            deleteResource: async (at) => {
              await beforeWrite(at.id);
              return store.records.deleteResource(at);
            },
          },
        }),
    });
  });
  afterAll(() => running.close());

  const create = (): Promise<Answered> => running.send("POST", "/api/rag/resource", { body: createBody() });
  const at = (method: string, id: string, sent: Sent = {}): Promise<Answered> =>
    running.send(method, `/api/rag/resource/${id}`, sent);

  it("sends an ETag with every answer of a resource, which changes when the resource changes", async () => {
    const created = await create();
    const id = created.json.data._id;
    const read = await at("GET", id);
    expect(created.headers["etag"]).toMatch(/^"[^"]+"$/);
    expect(read.headers["etag"]).toBe(created.headers["etag"]);
    const updated = await at("PUT", id, { body: { title: "Ebb" } });
    expect(updated.headers["etag"]).not.toBe(created.headers["etag"]);
    expect((await at("GET", id)).headers["etag"]).toBe(updated.headers["etag"]);
    const deleted = await at("DELETE", id);
    expect((await at("GET", id)).headers["etag"]).toBe(deleted.headers["etag"]);
  });

  it("answers a read with a known ETag with 304 and no body", async () => {
    const created = await create();
    const headers = { "if-none-match": String(created.headers["etag"]) };
    const known = await at("GET", created.json.data._id, { headers });
    expect(known).toMatchObject({ status: 304, text: "" });
    expect(known.headers["etag"]).toBe(created.headers["etag"]);
    await at("PUT", created.json.data._id, { body: { content: "New words." } });
    expect((await at("GET", created.json.data._id, { headers })).status).toBe(200);
    const chunks = await at("GET", `${created.json.data._id}/chunks`);
    const again = { headers: { "if-none-match": String(chunks.headers["etag"]) } };
    expect((await at("GET", `${created.json.data._id}/chunks`, again)).status).toBe(304);
  });

  it("accepts only one of two concurrent changes with the same If-Match", async () => {
    const created = await create();
    const headers = { "if-match": String(created.headers["etag"]), prefer: "respond-async" };
    const answers = await Promise.all(
      ["One.", "Two."].map((content) => at("PUT", created.json.data._id, { body: { content }, headers })),
    );
    expect(answers.map(({ status }) => status)).toEqual([202, 412]);
  });

  it.each([
    ["an update", "PUT", { title: "Flood" }],
    ["a delete", "DELETE", undefined],
  ])(
    "refuses %s with If-Match if another change was queued before its write",
    async (_name, method, body) => {
      const created = await create();
      const id = created.json.data._id;
      beforeWrite = async (written) => {
        // A change that an earlier test queued may be written now.
        if (written !== id) return;
        beforeWrite = async () => undefined;
        const headers = { prefer: "respond-async" };
        expect((await at("PUT", id, { body: { title: "Ebb" }, headers })).status).toBe(202);
      };
      const headers = { "if-match": String(created.headers["etag"]) };
      const late = await at(method, id, { headers, ...(body === undefined ? {} : { body }) });
      expect([late.status, late.json.error?.code]).toEqual([412, "precondition_failed"]);
      await vi.waitFor(async () => expect((await at("GET", id)).json.data.title).toBe("Ebb"), WAIT);
    },
  );

  it("refuses an update and a delete whose If-Match is stale", async () => {
    const created = await create();
    const id = created.json.data._id;
    const stale = { "if-match": String(created.headers["etag"]) };
    const fresh = await at("PUT", id, { body: { title: "Ebb" }, headers: stale });
    expect(fresh.status).toBe(200);
    const refused = await Promise.all([
      at("PUT", id, { body: { title: "Flood" }, headers: stale }),
      at("PUT", id, { body: { content: "x" }, headers: { ...stale, prefer: "respond-async" } }),
      at("DELETE", id, { headers: stale }),
    ]);
    expect(refused.map(({ status, json }) => [status, json.error.code])).toEqual(
      Array.from({ length: 3 }, () => [412, "precondition_failed"]),
    );
    expect((await at("GET", id)).json.data.title).toBe("Ebb");
    const headers = { "if-match": String(fresh.headers["etag"]) };
    expect((await at("DELETE", id, { headers })).status).toBe(200);
    expect((await at("DELETE", id, { headers })).status).toBe(404);
  });
});
