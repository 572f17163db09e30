import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

let running: Running;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
  for (const title of ["Über", "apple", "Bee"]) {
    const body = createBody({ title, owner_id: "o", description: `${title} ${"d".repeat(300)}` });
    const { json } = await running.send("POST", "/api/rag/resource", { body });
    collectionId = json.data.collectionId;
  }
});
afterAll(() => running.close());

const list = (query: Record<string, string>): Promise<Answered> => {
  const all = new URLSearchParams({ collectionId, ownerId: "o", ...query });
  return running.send("GET", `/api/rag/documents?${all.toString()}`);
};
const titlesOf = ({ json }: Answered): string[] =>
  json.data.documents.map(({ title }: { title: string }) => title);

describe("GET /api/rag/documents", () => {
  it("pages with the totals of the first page, whatever is added meanwhile", async () => {
    const first = await list({ limit: "2" });
    expect(titlesOf(first)).toEqual(["Bee", "apple"]);
    expect(first.json.data).toMatchObject({ total: 3, statuses: { queued: 0, chunked: 3, error: 0 } });
    expect(first.json.data.documents[0].description).toHaveLength(200);
    await running.send("POST", "/api/rag/resource", { body: createBody({ title: "aaa", owner_id: "o" }) });
    const rest = await list({ limit: "2", cursor: first.json.data.nextCursor });
    expect(titlesOf(rest)).toEqual(["Über"]);
    expect(rest.json.data).toMatchObject({ total: 3, nextCursor: null });
  });

  it("finds words of title, description, address and metadata", async () => {
    const body = createBody({
      title: "Tagged",
      owner_id: "o",
      metadata: { path: "in/ÄB.md", tags: ["red"] },
    });
    await running.send("POST", "/api/rag/resource", { body });
    for (const text of ["TAG red", "äb.md"]) expect(titlesOf(await list({ text }))).toEqual(["Tagged"]);
    expect((await list({ text: "tag blue" })).json.data).toMatchObject({ documents: [], total: 0 });
  });

  it.each([
    ["of nothing", "AAAA"],
    ["with a count that is none", Buffer.from('["a","b",-1,0,0]').toString("base64url")],
  ])("refuses a cursor %s", async (_what, cursor) => {
    expect(await list({ cursor })).toMatchObject({
      status: 400,
      json: { error: { code: "invalid_field", field: "cursor" } },
    });
  });
});
