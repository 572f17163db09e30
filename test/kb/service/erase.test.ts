import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { canaryWord, findCanaries } from "../../canaries.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createBody, fileForm, openRunning } from "./running.ts";
import type { Answered, Running } from "./running.ts";
import { lackingChunks } from "../store/embedded.ts";
import { WAIT } from "../../wait.ts";

let running: Running;
let receiver: Receiver;
let admin: string;
beforeEach(async () => {
  receiver = await openReceiver();
  receiver.answer = () => ({ status: 503 });
  running = await openRunning({
    webhookAllow: ["127.0.0.1"],
    openEmbedder: async () => hashedEmbedder(),
    chat: { agents: [ANN] },
  });
  admin = await running.issueKey("local", ["read", "write", "chat", "admin"]);
});
afterEach(async () => {
  await running.close();
  await receiver.close();
});

const ANN = {
  id: "ann",
  systemPrompt: "",
  knowledge: [{ tier: "high_accuracy" as const, owner: "ann", top_k: 5 }],
};

/** Words of one document, each in another part of it. */
function canaries(): Record<"title" | "description" | "text" | "tag" | "name" | "key", string> {
  const [title = "", description = "", text = "", tag = "", name = "", key = ""] = Array.from(
    { length: 6 },
    canaryWord,
  );
  return { title, description, text, tag, name, key };
}

/** Creates a document with a word of its own in each part. Returns its id. */
async function create(words: ReturnType<typeof canaries>, more: object = {}): Promise<string> {
  const body = createBody({
    title: `About ${words.title}`,
    description: `${words.description} described`,
    content: `# Head\n\nThe heron ${words.text} stands by the canal. ${"It waits. ".repeat(40)}`,
    metadata: { tags: [words.tag], [words.key]: 1, path: `${words.tag}.md` },
    owner_id: "ann",
    collection_details: "high_accuracy",
    ...more,
  });
  const made = await running.send("POST", "/api/rag/resource", {
    body,
    headers: { "idempotency-key": `create-${words.tag.slice(0, 3)}-${Math.random()}` },
  });
  expect(made.status).toBe(201);
  return made.json.data._id as string;
}

async function upload(words: ReturnType<typeof canaries>): Promise<string> {
  const sent = await running.send("POST", "/image/processing/upload", {
    body: fileForm(`The egret ${words.text} sleeps.`, `${words.name}.txt`),
    headers: { "idempotency-key": `upload-${Math.random()}` },
  });
  expect(sent.status).toBeLessThan(300);
  return sent.json.file_url as string;
}

async function search(query: string): Promise<{ title: string; score: number }[]> {
  const { json } = await running.send("GET", "/api/rag/collections");
  const { _id: collection_id } = json.data.collections.find(
    ({ details }: { details: string }) => details === "high_accuracy",
  );
  const found = await running.send("POST", "/rag/query", {
    body: { query, collection_id, owner_id: "ann", top_k: 20 },
  });
  return found.json.results.map(({ title, score }: { title: string; score: number }) => ({ title, score }));
}

const erase = (id: string, key?: string): Promise<Answered> =>
  running.send("DELETE", `/api/rag/resource/${id}?purge=true`, key === undefined ? {} : { key });
const left = (words: ReturnType<typeof canaries>): string[] =>
  findCanaries(running.stateDir, Object.values(words));

describe("an erasure of documents", () => {
  it("leaves no word of a document in any file of the service, and the scores of the others as they were", async () => {
    await running.send("POST", "/v1/webhooks", { key: admin, body: { url: `${receiver.url}/` } });
    for (let at = 0; at < 30; at++)
      await create(canaries(), { title: `Other ${at}`, content: `The kiwi ${at} walks. `.repeat(50) });
    const words = canaries();
    const id = await create(words);
    const earlier = canaries();
    await running.send("PUT", `/api/rag/resource/${id}`, {
      body: { title: `About ${words.title} ${earlier.title}`, content: `Now ${words.text} ${earlier.text}.` },
    });
    const all = { tiers: ["high_accuracy"] } as const;
    const { fingerprint } = hashedEmbedder();
    await vi.waitFor(async () => {
      expect(await lackingChunks(running.store.index, fingerprint, all)).toEqual([]);
      expect(await lackingChunks(running.store.index, fingerprint, { ...all, lacks: "sentences" })).toEqual(
        [],
      );
    }, WAIT);
    const before = await search("kiwi walks");
    const { json, status } = await erase(id);
    expect(status).toBe(200);
    expect(json.data).toMatchObject({ _id: id, isDeleted: true });
    expect(left(words)).toEqual([]);
    expect(left(earlier)).toEqual([]);
    expect(await search("kiwi walks")).toEqual(before);
    expect((await running.send("GET", `/api/rag/resource/${id}`)).status).toBe(404);
  });

  it("removes the files that a document used, now or before", async () => {
    const [first, second] = [canaries(), canaries()];
    const id = await create(first, { content: undefined, url: await upload(first) });
    await running.send("PUT", `/api/rag/resource/${id}`, { body: { url: await upload(second) } });
    expect((await erase(id)).status).toBe(200);
    expect([...left(first), ...left(second)]).toEqual([]);
  });

  it("keeps a file that another document uses", async () => {
    const words = canaries();
    const url = await upload(words);
    const id = await create(words, { content: undefined, url });
    const other = await create(canaries(), { content: undefined, url });
    expect((await erase(id)).status).toBe(200);
    const { json } = await running.send("GET", `/api/rag/resource/${other}`);
    expect(json.data.content).toContain(words.text);
  });

  it("erases a document that was deleted before", async () => {
    const words = canaries();
    const id = await create(words);
    await running.send("DELETE", `/api/rag/resource/${id}`);
    expect(left(words)).not.toEqual([]);
    expect((await erase(id)).json.data).toMatchObject({ _id: id, isDeleted: true });
    expect(left(words)).toEqual([]);
  });

  it("removes the turns of a thread from the first that was given a passage of it, and none before", async () => {
    const words = canaries();
    const id = await create(words);
    const ask = async (user: string): Promise<void> => {
      const answered = await running.send("POST", "/api/v2/model/chat/completion", {
        body: { agent_id: "ann", user, thread_id: "t" },
      });
      expect(answered.status).toBe(200);
    };
    await ask("zzzz yyyy");
    await ask("Where does the heron stand?");
    await ask("zzzz yyyy xxxx");
    expect((await erase(id)).status).toBe(200);
    const turns = await running.send("GET", "/v1/threads/turns?agent_id=ann&thread_id=t");
    expect(turns.json.data.turns).toHaveLength(1);
    expect(left(words)).toEqual([]);
  });

  it("does not find a document that was erased before", async () => {
    const id = await create(canaries());
    await erase(id);
    expect((await erase(id)).status).toBe(404);
    expect((await running.send("GET", `/api/rag/resource/${id}?deleted=true`)).status).toBe(404);
  });

  it("touches no document of another account", async () => {
    const words = canaries();
    const id = await create(words);
    const other = await running.issueKey("other", ["write"]);
    expect((await erase(id, other)).status).toBe(404);
    expect((await running.send("GET", `/api/rag/resource/${id}`)).status).toBe(200);
  });
});
