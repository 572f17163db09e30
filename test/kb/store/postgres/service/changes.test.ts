import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openModelEndpoint, ENDPOINT_KEY, type ModelEndpoint } from "../../../../fakes/model-endpoint.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { createBody, openRunning } from "../../../service/running.ts";
import { withMethods } from "../../with-methods.ts";
import { isSkipped } from "../databases.ts";
import { openServices, type Services } from "./services.ts";

const ROUNDS = 4;

describe.skipIf(isSkipped())("two processes that change the same", () => {
  let services: Services;
  let model: ModelEndpoint;
  beforeAll(async () => {
    model = await openModelEndpoint();
    services = await openServices(2, {
      webhookAllow: ["127.0.0.1"],
      languageModel: { baseUrl: model.url, model: "seeing", apiKey: () => ENDPOINT_KEY },
    });
  });
  afterAll(async () => {
    await services.close();
    await model.close();
  });
  const send: Services["send"] = (...given) => services.send(...given);
  const create = async (change: object = {}): Promise<string> => {
    const { json } = await send(0, "POST", "/api/rag/resource", { body: createBody(change) });
    return `/api/rag/resource/${json.data._id}`;
  };
  /** Sends a change to each process at the same time. */
  const both = async (method: string, path: string, one: object, other: object): Promise<void> => {
    const answers = await Promise.all([one, other].map((body, at) => send(at, method, path, { body })));
    expect(answers.map(({ status, text }) => (status < 300 ? "done" : text))).toEqual(["done", "done"]);
  };

  it("two processes keep both settings of a document", async () => {
    const path = await create({ settings: { chunkSize: 500, chunkOverlap: 50 } });
    for (let round = 1; round <= ROUNDS; round += 1) {
      const [chunkSize, chunkOverlap] = [500 + round, 50 + round];
      await both("PUT", path, { settings: { chunkSize } }, { settings: { chunkOverlap } });
      expect((await send(0, "GET", path)).json.data.settings).toMatchObject({ chunkSize, chunkOverlap });
    }
  });

  it("two processes that change one document split the text that it has", async () => {
    const path = await create();
    for (let round = 1; round <= ROUNDS; round += 1) {
      const content = `# Round ${round}\n\n${"The moon pulls the sea. ".repeat(30 * round)}`;
      await both("PUT", path, { content }, { settings: { chunkSize: 300 + round, chunkOverlap: 0 } });
      const stored = (await send(1, "GET", path)).json.data;
      expect(stored).toMatchObject({ content, settings: { chunkSize: 300 + round } });
      const { chunks } = (await send(0, "GET", `${path}/chunks`)).json.data;
      for (const { content: text, start, end } of chunks) expect(text).toBe(content.slice(start, end));
      expect(chunks.at(-1).end).toBe(content.trimEnd().length);
    }
  });

  it("two processes count each change of a document, and never two under one version", async () => {
    const path = await create();
    const versions = await Promise.all(
      Array.from({ length: 2 * ROUNDS }, async (_, at) => {
        const answer = await send(at, "PUT", path, { body: { content: `Text ${at}.` } });
        return answer.status === 200 ? (answer.json.data.revision ?? "changed") : answer.json.error.code;
      }),
    );
    const changed = versions.filter((each) => each !== "ingest_busy").length;
    expect(changed).toBeGreaterThan(0);
    expect((await send(0, "GET", `${path}/chunks`)).json.data.version).toBe(1 + changed);
  });

  it("two processes answer the questions of a thread one after another, each with the one before", async () => {
    let running = 0;
    let most = 0;
    model.behave = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 30));
      running -= 1;
      return { kind: "answer", text: "Noted." };
    };
    const asked = model.requests.length;
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        send(at, "POST", "/api/v2/model/chat/completion", {
          body: { agent_id: "default", thread_id: "shared", user: `Question ${at}?` },
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(most).toBe(1);
    const lengths = model.requests.slice(asked).map(({ messages }) => messages.length);
    expect(lengths.map((length) => length - (lengths[0] ?? 0))).toEqual([0, 2, 4, 6, 8, 10]);
    const turns = await send(1, "GET", "/v1/threads/turns?agent_id=default&thread_id=shared&limit=10");
    expect(turns.json.data.turns).toHaveLength(6);
  });

  it("a request ends its wait when another process has ended its job", async () => {
    // This process leases no job, so that the others do its work; its request hears of the end from them alone.
    const idle = await openRunning({
      store: await openPostgresStore(services.url),
      sharesStore: true,
      wrapStore: (store) => withMethods(store, { queue: { lease: () => Promise.resolve(undefined) } }),
    });
    try {
      const key = await idle.issueKey("local", ["write"]);
      const body = createBody({ settings: { strategy: "semantic" } });
      const headers = { prefer: "respond-async, wait=5" };
      // 202 if the end of the job were not announced, unless a check of everything, every 10 s, came just then.
      expect((await idle.send("POST", "/api/rag/resource", { key, body, headers })).status).toBe(201);
    } finally {
      await idle.close();
    }
  });

  it("two processes wait for each other's queued changes: the last request wins", async () => {
    const path = await create();
    for (let round = 1; round <= ROUNDS; round += 1) {
      const queued = await send(0, "PUT", path, {
        body: { content: `Queued ${round}.`, title: "Queued" },
        headers: { prefer: "respond-async" },
      });
      expect(queued.status).toBe(202);
      expect((await send(1, "PUT", path, { body: { title: `Title ${round}` } })).status).toBe(200);
      expect((await send(0, "GET", path)).json.data).toMatchObject({
        title: `Title ${round}`,
        content: `Queued ${round}.`,
      });
    }
  });
});
