import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

let running: Running;
let textsRead = 0;
/** Number of chunks of each read. */
let chunksRead: number[] = [];
/** Called after each read of chunks. */
let meanwhile = async (): Promise<void> => {};
beforeAll(async () => {
  running = await openRunning({
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          resource: (at) => {
            textsRead += 1;
            return store.records.resource(at);
          },
          chunks: async (query) => {
            const part = await store.records.chunks(query);
            chunksRead.push(part?.chunks.length ?? 0);
            await meanwhile();
            return part;
          },
        },
      }),
  });
});
afterAll(() => running.close());

it("searches one document without reading its whole text", async () => {
  const made = await running.send("POST", "/api/rag/resource", { body: createBody() });
  textsRead = 0;
  const body = { query: "moon", doc_id: made.json.data._id };
  const found = await running.send("POST", "/rag/query", { body });
  expect(found.json.results).toHaveLength(1);
  expect(textsRead).toBe(0);
});

describe("the chunks of a long document", () => {
  const COUNT = 600;
  const textOf = (word: string): string =>
    Array.from({ length: COUNT }, (_, at) => `${word} ${at} ${"x".repeat(40)}`).join("\n\n");
  const SETTINGS = { settings: { strategy: "recursive", chunkSize: 60, chunkOverlap: 0 } };
  let path: string;
  let changes: number;
  beforeEach(async () => {
    meanwhile = () => Promise.resolve();
    const made = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: textOf("moon"), ...SETTINGS }),
    });
    path = `/api/rag/resource/${made.json.data._id}`;
    chunksRead = [];
    changes = 0;
  });
  const change = async (): Promise<void> => {
    changes += 1;
    const body = { content: textOf(`sea${changes}`), ...SETTINGS };
    expect((await running.send("PUT", path, { body })).status).toBe(200);
  };

  it("reads the chunks of a long document in parts", async () => {
    const answer = await running.send("GET", `${path}/chunks`);
    expect(answer.json.data.chunks).toHaveLength(COUNT);
    expect(new Set(answer.json.data.chunks.map(({ id }: { id: string }) => id)).size).toBe(COUNT);
    expect(Math.max(...chunksRead)).toBeLessThan(300);
  });

  it("returns chunks of one version even if the document changes during the read", async () => {
    meanwhile = async () => {
      if (chunksRead.length === 2) await change();
    };
    const { data } = (await running.send("GET", `${path}/chunks`)).json;
    expect([data.version, data.chunks.length]).toEqual([2, COUNT]);
    const words = data.chunks.map(({ content }: { content: string }) => content.split(" ")[0]);
    expect(new Set(words)).toEqual(new Set(["sea1"]));
  });

  it("reads all chunks at once if the document keeps changing", async () => {
    meanwhile = change;
    const { data } = (await running.send("GET", `${path}/chunks`)).json;
    expect([data.version, data.chunks.length]).toEqual([chunksRead.length, COUNT]);
    expect(chunksRead.at(-1)).toBe(COUNT);
  });

  it("answers 404 if the document is deleted during the read", async () => {
    meanwhile = async () => {
      if (chunksRead.length === 1) await running.send("DELETE", path);
    };
    expect((await running.send("GET", `${path}/chunks`)).status).toBe(404);
  });
});
