import { FormData } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Route } from "../../../src/kb/http/operation/route-table.ts";
import { openMetrics } from "../../../src/metrics/metrics.ts";
import { DEFAULT_SETTINGS } from "../../../src/wire/primitives.ts";
import { createBody, fileForm, FIRST_STATE, openRunning, queuesOf } from "../service/running.ts";
import type { Running, Sent } from "../service/running.ts";

/** Records of one account, and those of their texts that no answer to another account may contain. */
interface Owned {
  readonly resource: { readonly _id: string; readonly collectionId: string; readonly ownerId: string };
  readonly fileUrl: string;
  readonly keyId: string;
  readonly endpointId: string;
  readonly secrets: readonly string[];
}

/** How another account requests the owner's records from a route. */
interface Ask {
  /** Default: the route's own path. */
  readonly path?: (owned: Owned) => string;
  readonly sent?: (owned: Owned) => Sent;
  /** `nothing`: 404, as if it did not exist. `own`: an answer without any record of the owner. A number: this status. */
  readonly finds: "nothing" | "own" | number;
}

const resourcePath = ({ resource }: Owned): string => `/api/rag/resource/${resource._id}`;
const keyPath = ({ keyId }: Owned): string => `/v1/keys/${keyId}`;
const endpointPath = ({ endpointId }: Owned): string => `/v1/webhooks/${endpointId}`;
/** A picture of one pixel. */
const PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const threadForm = (agentId: string) => {
  const form = fileForm(Buffer.from(PIXEL, "base64"), "pixel.gif");
  form.append("agent_id", agentId);
  form.append("thread_id", "t");
  return form;
};
const list = ({ resource: { collectionId, ownerId } }: Owned): string =>
  `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=${ownerId}`;

const THREAD = "agent_id=default&thread_id=owners-thread";

/** Every route of the service. The test fails for a missing one: add how another account requests the owner's records from it. */
const ASKS: Readonly<Record<string, Ask>> = {
  "POST /image/processing/upload": { sent: () => ({ body: fileForm("mine") }), finds: "own" },
  "POST /api/rag/resource": {
    sent: ({ fileUrl }) => ({ body: createBody({ content: undefined, url: fileUrl }) }),
    finds: 400,
  },
  "PUT /api/rag/resource/:id": {
    path: resourcePath,
    sent: () => ({ body: { title: "Taken" } }),
    finds: "nothing",
  },
  "DELETE /api/rag/resource/:id": { path: resourcePath, finds: "nothing" },
  "GET /api/rag/resource/:id": { path: resourcePath, finds: "nothing" },
  "GET /api/rag/resource/:id/chunks": { path: (owned) => `${resourcePath(owned)}/chunks`, finds: "nothing" },
  "GET /api/rag/resource/by-collection": { path: list, finds: "nothing" },
  "GET /api/rag/collections": { finds: "own" },
  "GET /api/rag/owners": { finds: "own" },
  "GET /api/rag/documents": {
    path: (owned) => list(owned).replace("resource/by-collection", "documents"),
    finds: "nothing",
  },
  "POST /rag/query": {
    sent: ({ resource }) => ({ body: { query: "moon", doc_id: resource._id } }),
    finds: "nothing",
  },
  "GET /files/:token/:name": { path: ({ fileUrl }) => new URL(fileUrl).pathname, finds: "nothing" },
  "POST /api/v2/model/chat/completion": {
    sent: () => ({ body: { user: "moon", agent_id: "default" } }),
    finds: "own",
  },
  "POST /files/upload": {
    sent: () => ({ body: threadForm("default") }),
    finds: "own",
  },
  "GET /v1/agents": { finds: "own" },
  "GET /v1/threads": { path: () => "/v1/threads?agent_id=default", finds: "own" },
  "DELETE /v1/threads": { path: () => `/v1/threads?${THREAD}`, finds: "nothing" },
  "GET /v1/threads/turns": { path: () => `/v1/threads/turns?${THREAD}`, finds: "nothing" },
  "GET /v1/health": { finds: "own" },
  "GET /healthz": { finds: "own" },
  "GET /readyz": { finds: "own" },
  "GET /metrics": { finds: "own" },
  "GET /openapi.json": { finds: "own" },
  "POST /v1/keys": { sent: () => ({ body: { name: "mine", scopes: ["read"] } }), finds: "own" },
  "GET /v1/keys": { finds: "own" },
  "DELETE /v1/keys/:id": { path: keyPath, finds: "nothing" },
  "POST /v1/keys/:id/rotate": {
    path: (owned) => `${keyPath(owned)}/rotate`,
    sent: () => ({ body: {} }),
    finds: "nothing",
  },
  "GET /v1/events": { sent: () => ({ until: FIRST_STATE }), finds: "own" },
  "GET /v1/me": { finds: "own" },
  "POST /console/links": { sent: () => ({ body: {} }), finds: "own" },
  // Only a page of the console may sign in and out.
  "POST /console/session": { sent: () => ({ body: { key: "kb_other" } }), finds: 403 },
  "DELETE /console/session": { finds: 403 },
  "POST /v1/webhooks": { sent: () => ({ body: { url: "https://hooks.example/mine" } }), finds: "own" },
  "GET /v1/webhooks": { finds: "own" },
  "PUT /v1/webhooks/:id": {
    path: endpointPath,
    sent: () => ({ body: { description: "Taken" } }),
    finds: "nothing",
  },
  "DELETE /v1/webhooks/:id": { path: endpointPath, finds: "nothing" },
  "POST /v1/webhooks/:id/test": { path: (owned) => `${endpointPath(owned)}/test`, finds: "nothing" },
};

/** Ids of the message that was given up and of the waiting document. */
const MESSAGE = "msg_of_the_owner";
const WAITING = "f".repeat(24);

/** Returns the text of a body; of a form, its text fields. */
const wordsOf = (body: Sent["body"]): string =>
  JSON.stringify(
    body instanceof FormData ? [...body].filter(([, value]) => typeof value === "string") : (body ?? ""),
  );

const nameOf = ({ method, url }: Route): string => `${method} ${url}`;

let running: Running;
let foreign: string;
let owned: Owned;
beforeAll(async () => {
  // Uploaded files need a key too, so that every route with accounts can be called with the wrong key.
  const metrics = openMetrics("0.0.0-test");
  running = await openRunning({
    filesNeedKey: true,
    observer: metrics.service,
    metrics: () => metrics.text(),
  });
  metrics.readService(() => running.service.figures());
  const admin = await running.issueKey("local", ["admin"]);
  foreign = await running.issueKey("someone-else", ["admin"]);
  const send = (path: string, sent: Sent) => running.send("POST", path, { key: admin, ...sent });
  const resource = (await send("/api/rag/resource", { body: createBody() })).json.data;
  const fileUrl = (await send("/image/processing/upload", { body: fileForm("secret words") })).json.file_url;
  const key = (await send("/v1/keys", { body: { name: "The owner's key", scopes: ["read"] } })).json.data;
  const endpoint = (
    await send("/v1/webhooks", { body: { url: "https://hooks.example/owner", description: "The owner's" } })
  ).json.data;
  const question = { agent_id: "default", thread_id: "owners-thread", user: "The owner's question" };
  await send("/api/v2/model/chat/completion", { body: question });
  await leaveWaiting(resource.ownerId, endpoint._id);
  owned = {
    resource,
    fileUrl,
    keyId: key._id,
    endpointId: endpoint._id,
    secrets: [
      resource._id,
      resource.collectionId,
      resource.ownerId,
      "The moon pulls",
      "secret words",
      new URL(fileUrl).pathname,
      "owners-thread",
      key._id,
      key.hint,
      "The owner's",
      endpoint._id,
      endpoint.secret,
      "hooks.example/owner",
      "owner's prompt",
      MESSAGE,
      WAITING,
    ],
  };
});

/** Adds a message that was given up to the owner's endpoint, and a waiting document of the owner. */
async function leaveWaiting(ownerId: string, endpointId: string): Promise<void> {
  const { store } = running;
  const accountId = (await store.records.accounts()).find(({ name }) => name === "local")?.id ?? "";
  const nowIso = new Date().toISOString();
  // Due tomorrow, so that no runner takes them during the test.
  const nowMs = Date.now() + 24 * 60 * 60 * 1000;
  const letter = { eventId: MESSAGE, type: "resource.created", body: "{}", to: { endpointId } };
  await store.records.addDelivery({ accountId, ...letter, nowMs });
  for (const { number } of await store.queue.due({ queue: "webhook", nowMs, perLine: 10 })) {
    const job = await store.queue.lease({ number, worker: "test", nowMs });
    if (job?.name === MESSAGE)
      await store.records.settleDelivery(job, {
        nowIso,
        kind: "failed",
        problem: "The owner's problem",
        disable: false,
      });
  }
  const text = { origin: "content", title: WAITING, description: "", url: null, content: "" } as const;
  await store.records.enqueueCreate(
    {
      accountId,
      id: WAITING,
      tier: "fastest",
      ownerId,
      ...text,
      settings: DEFAULT_SETTINGS,
      createdAt: nowIso,
    },
    { body: "{}", nowMs, jobsMax: 10, charsMax: 1000 },
  );
}
afterAll(() => running.close());

it("covers every route of the server, and no other", () => {
  expect(running.service.routes().map(nameOf).toSorted()).toEqual(Object.keys(ASKS).toSorted());
});

describe("a request with the key of another account", () => {
  it.each(Object.entries(ASKS))(
    "%s finds no records of another account",
    async (name, { path, sent, finds }) => {
      const [method = "", url = ""] = name.split(" ");
      const answer = await running.send(method, path?.(owned) ?? url, { ...sent?.(owned), key: foreign });
      const found = answer.status < 300 ? "own" : answer.status;
      expect(found).toBe(finds === "nothing" ? 404 : finds);
      expect(answer.text).toMatch(sent?.(owned).until ?? "");
      // A refusal may repeat what was sent, but nothing else of the owner.
      const request = `${path?.(owned) ?? ""} ${wordsOf(sent?.(owned).body)}`;
      for (const secret of owned.secrets.filter((text) => !request.includes(text))) {
        expect(answer.text).not.toContain(secret);
      }
    },
  );

  it("leaves the owner's records unchanged", async () => {
    const admin = await running.issueKey("local", ["admin"]);
    const read = async (path: string) => (await running.send("GET", path, { key: admin })).json.data;
    expect(await read(resourcePath(owned))).toMatchObject({ title: "Tides", isDeleted: false });
    expect((await read("/v1/keys")).keys).toContainEqual(
      expect.objectContaining({ _id: owned.keyId, name: "The owner's key", state: "valid", expiresAt: null }),
    );
    expect((await read(`/v1/threads/turns?${THREAD}`)).turns).toHaveLength(1);
    expect((await running.send("GET", owned.fileUrl, { key: admin })).text).toBe("secret words");
    expect((await read("/v1/webhooks")).endpoints).toMatchObject([
      { _id: owned.endpointId, description: "The owner's", failed: 1 },
    ]);
    expect(await queuesOf(running, admin)).toMatchObject({ ingest: { waiting: 1 }, webhooks: { failed: 1 } });
    expect(await queuesOf(running, foreign)).toMatchObject({
      ingest: { waiting: 0, oldestAt: null, failed: 0 },
      webhooks: { waiting: 0, failed: 0 },
    });
  });
});

describe("every route that needs a key", () => {
  const OPEN = [
    "GET /v1/health",
    "GET /openapi.json",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "POST /console/session",
    "DELETE /console/session",
  ];

  it("declares the scope of every route", () => {
    const routes = running.service.routes();
    expect(routes.filter(({ scope }) => scope === undefined).map(nameOf)).toEqual([]);
    expect(
      routes
        .filter(({ scope }) => scope === "none")
        .map(nameOf)
        .toSorted(),
    ).toEqual(OPEN.toSorted());
  });

  it.each([
    ["no key", 401, "key_missing", () => null],
    ["an invented key", 401, "key_unknown", () => `kb_${"a".repeat(43)}`],
    [
      "an expired key",
      401,
      "key_expired",
      () => running.issueKey("local", ["admin"], "2020-01-01T00:00:00.000Z"),
    ],
  ])("refuses %s with %i", async (_name, status, code, keyOf) => {
    const key = await keyOf();
    for (const route of running.service.routes().filter((one) => one.scope !== "none")) {
      const answer = await running.send(route.method, ASKS[nameOf(route)]?.path?.(owned) ?? route.url, {
        key,
      });
      expect({ route: nameOf(route), status: answer.status, code: answer.json.error.code }).toEqual({
        route: nameOf(route),
        status,
        code,
      });
    }
  });

  it("refuses a key with all scopes but the required one with 403", async () => {
    for (const route of running.service.routes()) {
      if (route.scope === "none" || route.scope === "any") continue;
      const scopes = (["read", "write", "chat"] as const).filter((scope) => scope !== route.scope);
      const key = await running.issueKey("local", scopes);
      const answer = await running.send(route.method, ASKS[nameOf(route)]?.path?.(owned) ?? route.url, {
        key,
      });
      expect({ route: nameOf(route), status: answer.status, code: answer.json.error.code }).toEqual({
        route: nameOf(route),
        status: 403,
        code: "scope_missing",
      });
    }
  });
});
