import { createServer, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openIdempotency } from "../../../../../src/kb/http/operation/idempotency.ts";
import { openSharedTurns } from "../../../../../src/kb/queue/shared-turns.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { createBody, fileForm, type Answered } from "../../../service/running.ts";
import { isSkipped, query } from "../databases.ts";
import { openServices, type Services } from "./services.ts";

describe.skipIf(isSkipped())("two processes with requests of one Idempotency-Key", () => {
  let services: Services;
  /** A web server whose answers wait for the test. */
  let web: Server;
  let page: string;
  const waiting: ServerResponse[] = [];
  beforeAll(async () => {
    services = await openServices(2, { fetchAllow: ["127.0.0.1"] });
    web = createServer((_request, response) => void waiting.push(response)).listen(0, "127.0.0.1");
    await once(web, "listening");
    page = `http://127.0.0.1:${(web.address() as AddressInfo).port}/`;
  });
  afterAll(async () => {
    web.closeAllConnections();
    web.close();
    await services.close();
  });

  /** Sends a request to both services at once, several times. */
  const race = (method: string, path: string, key: string, sent: { body?: object | string | FormData }) =>
    Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        send(at, method, path, { ...sent, headers: { "idempotency-key": key } }),
      ),
    );
  const send: Services["send"] = (...given) => services.send(...given);
  const countOf = async (owner: string): Promise<number> => {
    const { json } = await send(
      1,
      "GET",
      `/api/rag/resource/by-collection?collectionId=${await fastest()}&ownerId=${owner}`,
    );
    return json.data.resources.length;
  };
  let collectionId: string | undefined;
  const fastest = async (): Promise<string> => {
    collectionId ??= (await send(0, "POST", "/api/rag/resource", { body: createBody({ owner_id: "any" }) }))
      .json.data.collectionId as string;
    return collectionId;
  };
  const createLink = (at: number, key: string, owner: string): Promise<Answered> =>
    send(at, "POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url: page, owner_id: owner }),
      headers: { "idempotency-key": key },
    });
  const answerWeb = (): void => {
    for (const response of waiting.splice(0))
      response.setHeader("content-type", "text/plain").end("The moon pulls the sea.");
  };
  const started = (count: number) =>
    vi.waitFor(() => expect(waiting).toHaveLength(count), { timeout: 20_000 });

  it("requests of one Idempotency-Key create one resource, and all get the same answer", async () => {
    const answers = await race("POST", "/api/rag/resource", "create", {
      body: createBody({ owner_id: "one" }),
    });
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 201 });
    expect(await countOf("one")).toBe(1);
  });

  it("requests of one Idempotency-Key change a resource once", async () => {
    const { json } = await send(0, "POST", "/api/rag/resource", { body: createBody() });
    const path = `/api/rag/resource/${json.data._id}`;
    const answers = await race("PUT", path, "update", { body: { content: "New words." } });
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect((await send(1, "GET", `${path}/chunks`)).json.data.version).toBe(2);
  });

  it("requests of one Idempotency-Key queue one job", async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        send(at, "POST", "/api/rag/resource", {
          body: createBody({ owner_id: "queued" }),
          headers: { "idempotency-key": "queued", prefer: "respond-async" },
        }),
      ),
    );
    expect(new Set(answers.map(({ status, json }) => `${status} ${json.data._id}`)).size).toBe(1);
    expect(await countOf("queued")).toBe(1);
  });

  it("uploads of one Idempotency-Key store one file", async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        send(at, "POST", "/image/processing/upload", {
          body: fileForm("words"),
          headers: { "idempotency-key": "file" },
        }),
      ),
    );
    const tokens = answers.flatMap(({ json }) =>
      json.file_url === undefined ? [] : [new URL(json.file_url).pathname],
    );
    expect(new Set(tokens).size).toBe(1);
  });

  it("two processes carry out requests of one Idempotency-Key once: the later request waits for the first", async () => {
    const first = createLink(0, "slow", "slow");
    await started(1);
    const second = createLink(1, "slow", "slow");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(waiting).toHaveLength(1);
    answerWeb();
    expect((await second).text).toBe((await first).text);
    expect(await countOf("slow")).toBe(1);
  });

  it("two requests of one Idempotency-Key leave one resource if the first was stopped for so long that the second took over", async () => {
    const first = createLink(0, "stopped", "stopped");
    await started(1);
    // A stopped process renews nothing.
    await query(services.url, "UPDATE claim SET ends_at = now(), holder = 'stopped'");
    const second = createLink(1, "stopped", "stopped");
    await started(2);
    answerWeb();
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1].text).toBe(answers[0].text);
    expect(await countOf("stopped")).toBe(1);
  });

  it("another request under an Idempotency-Key is refused, also while the first is in progress", async () => {
    const first = createLink(0, "other", "other");
    await started(1);
    const second = createLink(1, "other", "another");
    answerWeb();
    expect((await first).status).toBe(201);
    expect(await second).toMatchObject({ status: 409, json: { error: { code: "idempotency_conflict" } } });
  });

  it("the Idempotency-Key of a refused request may be used again, in any process", async () => {
    const refused = await send(0, "POST", "/api/rag/resource", {
      body: createBody({ title: "" }),
      headers: { "idempotency-key": "refused" },
    });
    expect(refused.status).toBe(400);
    const again = await send(1, "POST", "/api/rag/resource", {
      body: createBody(),
      headers: { "idempotency-key": "refused" },
    });
    expect(again.status).toBe(201);
  });

  it("requests of one Idempotency-Key get 409 and Retry-After if the first takes too long, and wait for no process that has crashed", async () => {
    const store = await openPostgresStore(services.url);
    const request = { accountId: "a", key: "late", sha256: "s" };
    const opened: ReturnType<typeof openSharedTurns>[] = [];
    const idempotencyOf = (holder: string) => {
      const turns = openSharedTurns(store.claims, holder, () => expect.unreachable());
      opened.push(turns);
      return openIdempotency(store.records, turns, Date.now, 300);
    };
    const never = new Promise<string>(() => undefined);
    void idempotencyOf("first").once(
      request,
      () => never,
      () => never,
    );
    const run = () =>
      idempotencyOf("second").once(
        request,
        async () => "done",
        () => never,
      );
    await vi.waitFor(async () =>
      expect(await store.claims?.take(["request a/late"], "third", 1)).toEqual([]),
    );
    await expect(run()).rejects.toMatchObject({ refusal: "idempotency_in_progress", retryAfterSeconds: 10 });
    await query(services.url, "UPDATE claim SET ends_at = now()");
    expect(await run()).toBe("done");
    for (const turns of opened) await turns.close();
    await store.close();
  });
});
