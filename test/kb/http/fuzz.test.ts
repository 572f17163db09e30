import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { anyCharacter } from "../../any-character.ts";
import { randomRuns } from "../../random-runs.ts";

let running: Running;
let id: string;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody() });
  id = json.data._id;
  collectionId = json.data.collectionId;
});
afterAll(() => running.close());

/** Values of every kind, including plausible ones. */
const value = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: anyCharacter }),
  fc.constantFrom("fastest", "recursive", "", "10", "1e3", -1, 0, 1, 5, 1e300, 2 ** 53, null, true, [], {}),
);
const settings = fc.record({ strategy: value, chunkSize: value, chunkOverlap: value }, { requiredKeys: [] });
const resourceBody = fc.record(
  {
    title: value,
    description: value,
    content: value,
    url: value,
    collection_details: fc.oneof(fc.constantFrom("fastest", "moderate"), value),
    owner_id: value,
    settings: fc.oneof(settings, value),
    __proto__: value,
  },
  { requiredKeys: [] },
);
/** Mostly valid, so that it passes the first check. */
const nearlyRight = fc
  .tuple(resourceBody, fc.subarray(["title", "description", "content", "url", "settings", "owner_id"]))
  .map(([wild, keys]) =>
    createBody(Object.fromEntries(Object.entries(wild).filter(([key]) => keys.includes(key)))),
  );
const searchBody = fc.record(
  { query: value, doc_id: value, collection_id: value, owner_id: value, score: value, top_k: value },
  { requiredKeys: [] },
);

async function expectNoFault(method: string, path: string, body?: object | string): Promise<void> {
  const { status, json } = await running.send(method, path, body === undefined ? {} : { body });
  const { success, error } = json;
  expect({ status, success }).toEqual({ status, success: status < 300 });
  expect(status === 501 || status < 500).toBe(true);
  expect(typeof error?.code).toBe(status < 300 ? "undefined" : "string");
}

describe("arbitrary input", () => {
  it("causes no internal error in create", async () => {
    const body = fc.oneof(
      resourceBody,
      nearlyRight,
      fc.jsonValue().map((json) => JSON.stringify(json)),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(body, (sent) => expectNoFault("POST", "/api/rag/resource", sent)),
      { numRuns: randomRuns(300) },
    );
  });

  it("causes no internal error in update", async () => {
    await fc.assert(
      fc.asyncProperty(resourceBody, (body) => expectNoFault("PUT", `/api/rag/resource/${id}`, body)),
      { numRuns: randomRuns(150) },
    );
  });

  it("causes no internal error in search", async () => {
    const query = fc.string({ unit: anyCharacter, maxLength: 200 });
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    const inDocument = fc.record({ query, score, doc_id: fc.constant(id) });
    const inCollection = fc.record({
      query,
      top_k: fc.integer({ min: 1, max: 100 }),
      collection_id: fc.constant(collectionId),
      owner_id: fc.string({ unit: anyCharacter, minLength: 1, maxLength: 10 }),
    });
    const body = fc.oneof(searchBody, inDocument, inCollection);
    await fc.assert(
      fc.asyncProperty(body, (sent) => expectNoFault("POST", "/rag/query", sent)),
      { numRuns: randomRuns(300) },
    );
  });

  it("causes no internal error in the list's parameters and in paths", async () => {
    const text = fc
      .string({ unit: anyCharacter, maxLength: 40 })
      .map((raw) => encodeURIComponent(raw.toWellFormed()));
    await fc.assert(
      fc.asyncProperty(text, text, text, async (one, two, three) => {
        await expectNoFault(
          "GET",
          `/api/rag/resource/by-collection?collectionId=${one}&ownerId=${two}&limit=${three}&cursor=${two}`,
        );
        await expectNoFault(
          "GET",
          `/api/rag/documents?collectionId=${collectionId}&ownerId=${one}&title=${two}&path=${three}&filter=${two}&cursor=${three}`,
        );
        await expectNoFault("GET", `/api/rag/resource/x${one}/chunks`);
        await expectNoFault("DELETE", `/api/rag/resource/x${two}`);
        await expectNoFault("GET", `/files/x${one}/x${two}`);
      }),
      { numRuns: randomRuns(100) },
    );
  });
});
