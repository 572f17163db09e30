import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, InMemoryTransport, type McpSubscription } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import { openServiceConnections } from "../../src/mcp/service.ts";
import { serveConnection } from "../../src/mcp/stdio.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { AGES, openMcpGround, type McpGround } from "./fixture.ts";

let stateDir: string;
let service: Running;
let url: string;
let mcp: McpGround;
const connections = openServiceConnections();
const defects: unknown[] = [];
const endings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-subscriptions-"));
  service = await openRunning({ stateDir });
  url = service.url;
  mcp = await openMcpGround({
    get service() {
      return url;
    },
    files: NO_FILES,
    onDefect: (error) => defects.push(error),
  });
}, 60_000);
afterEach(async () => {
  await Promise.all(endings.splice(0).map((end) => end()));
  assert.deepEqual(defects.splice(0), []);
});
afterAll(async () => {
  await mcp.close();
  await connections.close();
  await service.close();
  await rm(stateDir, { recursive: true });
});

/** What a client was notified of. */
interface Notices {
  readonly updated: string[];
  lists: number;
}

function noticesOf(client: Client): Notices {
  const notices: Notices = { updated: [], lists: 0 };
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    notices.updated.push(params.uri);
  });
  client.setNotificationHandler("notifications/resources/list_changed", () => {
    notices.lists += 1;
  });
  return notices;
}

/** A client over one channel, as over stdio. */
async function connectChannel(age: (typeof AGES)[number], key = service.key): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const served = serveConnection(
    {
      version: "0.0.0-test",
      onDefect: (error) => defects.push(error),
      caller: {
        reach: () =>
          Promise.resolve({
            service: connections.as({ apiUrl: url, dbUrl: url, pauthkey: key }),
            ownsLedger: false,
          }),
        files: () => NO_FILES,
      },
    },
    far,
  );
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: age } });
  await client.connect(near);
  endings.push(async () => {
    await client.close();
    await served.close();
  });
  return client;
}

async function create(key = service.key): Promise<string> {
  const { json } = await service.send("POST", "/api/rag/resource", { key, body: createBody() });
  return json.data._id;
}

async function update(id: string): Promise<void> {
  const body = { content: `Changed at ${performance.now()}` };
  const { status } = await service.send("PUT", `/api/rag/resource/${id}`, { body });
  expect(status).toBe(200);
}

const uriOf = (id: string): string => `kbsync://documents/${id}`;
const shows = (check: () => unknown): Promise<unknown> =>
  vi.waitFor(check, { timeout: 15_000, interval: 20 });

/** Subscribes as the client's age does, and returns how to unsubscribe. */
type Subscribe = (client: Client, uris: string[]) => Promise<() => Promise<unknown>>;

const listen: Subscribe = async (client, uris) => {
  const subscription = await client.listen({ resourceSubscriptions: uris, resourcesListChanged: true });
  return () => subscription.close();
};
const subscribe: Subscribe = async (client, uris) => {
  for (const uri of uris) await client.subscribeResource({ uri });
  return () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri })));
};

describe.each([
  ["over a channel, with the older protocol", () => connectChannel("legacy"), subscribe],
  ["over a channel", () => connectChannel("auto"), listen],
  ["over HTTP", async () => (await mcp.connect(service.key, "auto")).client, listen],
] as const)("a client %s", (_name, connect, subscribeTo) => {
  it("a client is notified of the documents that it subscribed to, and of a changed list", async () => {
    const [mine, other, long] = [await create(), await create(), await create()];
    const client = await connect();
    const notices = noticesOf(client);
    const stop = await subscribeTo(client, [uriOf(mine), `${uriOf(long)}?offset=50000`]);
    await update(other);
    await update(mine);
    await update(long);
    await shows(() => expect(notices.updated).toEqual([uriOf(mine), `${uriOf(long)}?offset=50000`]));
    expect(notices.lists).toBe(0);
    await create();
    await shows(() => expect(notices.lists).toBe(1));
    await service.send("DELETE", `/api/rag/resource/${mine}`);
    await shows(() => expect(notices.updated.slice(2)).toEqual([uriOf(mine)]));
    await shows(() => expect(notices.lists).toBe(2));
    await stop();
    await update(long);
    const witness = await connect();
    const seen = noticesOf(witness);
    await subscribeTo(witness, [uriOf(other)]);
    await update(other);
    await shows(() => expect(seen.updated).toEqual([uriOf(other)]));
    expect(notices.updated).toHaveLength(3);
  });

  it("misses nothing that happens while the service is down for it", async () => {
    const [first, id, last] = [await create(), await create(), await create()];
    const client = await connect();
    const notices = noticesOf(client);
    await subscribeTo(client, [uriOf(first), uriOf(id), uriOf(last)]);
    // Clients with one key share a stream, which may still bring what was created before. It brings changes in order: after
    // any notice of the last document, one of the first can only be that of its update, and all before it has come.
    await update(last);
    await shows(() => expect(notices.updated).toContain(uriOf(last)));
    notices.updated.length = 0;
    await update(first);
    await shows(() => expect(notices.updated).toContain(uriOf(first)));
    notices.updated.length = 0;
    await service.close();
    service = await openRunning({ stateDir });
    // Not reachable for MCP yet.
    await update(id);
    await create();
    url = service.url;
    await shows(() => expect(notices.updated).toEqual([uriOf(id)]));
    await shows(() => expect(notices.lists).toBeGreaterThan(0));
  });

  it("a client is notified of everything if the changes in between are no longer stored", async () => {
    const id = await create();
    const client = await connect();
    const notices = noticesOf(client);
    await subscribeTo(client, [uriOf(id)]);
    await service.close();
    service = await openRunning({ stateDir });
    for (let count = 0; count < 3; count++) await create();
    await service.store.records.purgeChanges("9999-01-01T00:00:00.000Z", 1000);
    url = service.url;
    await shows(() => expect(notices.updated).toEqual([uriOf(id)]));
    expect(notices.lists).toBe(1);
  });
});

describe("a subscription", () => {
  it("reports nothing of another account", async () => {
    const key = await service.issueKey("stranger", ["read", "write"]);
    const id = await create();
    for (const connect of [
      () => connectChannel("auto", key),
      async () => (await mcp.connect(key, "auto")).client,
    ]) {
      const client = await connect();
      const notices = noticesOf(client);
      await listen(client, [uriOf(id)]);
      await update(id);
      await create();
      const own = await create(key);
      expect(own).not.toBe(id);
      await shows(() => expect(notices).toEqual({ updated: [], lists: 1 }));
    }
  });

  it("a subscription ends with its key", async () => {
    const admin = await service.issueKey("local", ["admin"]);
    const made = await service.send("POST", "/v1/keys", {
      key: admin,
      body: { name: "brief", scopes: ["read"] },
    });
    const channel = await connectChannel("auto", made.json.data.key);
    const { client } = await mcp.connect(made.json.data.key, "auto");
    const open = await Promise.all(
      [channel, client].map((one) => one.listen({ resourcesListChanged: true })),
    );
    const revoked = await service.send("DELETE", `/v1/keys/${made.json.data._id}`, { key: admin });
    expect(revoked.status).toBe(200);
    expect(await Promise.all(open.map(({ closed }) => closed))).toEqual(["graceful", "remote"]);
  }, 15_000);

  it("a subscription is refused beyond the limits, and for what is no document", async () => {
    const { client } = await mcp.connect(service.key, "auto");
    const uris = Array.from({ length: 1001 }, (_, at) => uriOf(String(at)));
    await expect(client.listen({ resourceSubscriptions: uris })).rejects.toThrow(/More than 1000/);
    const legacy = await connectChannel("legacy");
    await expect(legacy.subscribeResource({ uri: "file:///etc/passwd" })).rejects.toThrow(/not found/i);
    const open: McpSubscription[] = [];
    const openAll = async (): Promise<never> => {
      for (;;) open.push(await client.listen({ resourcesListChanged: true }));
    };
    await expect(openAll()).rejects.toThrow(/Subscription limit reached/);
    expect(open.length).toBeGreaterThan(15);
    expect(open.length).toBeLessThanOrEqual(24);
    await open.pop()?.close();
    // The server notices the end of a stream a moment later.
    await shows(async () => open.push(await client.listen({ resourcesListChanged: true })));
    const other = await mcp.connect(await service.issueKey("other", ["read"]), "auto");
    open.push(await other.client.listen({ resourcesListChanged: true }));
    await Promise.all(open.map((one) => one.close()));
  });

  it("a subscription is refused, not lost, if no service runs", async () => {
    const live = url;
    url = "http://127.0.0.1:9";
    const client = await connectChannel("auto");
    await expect(client.listen({ resourcesListChanged: true })).rejects.toThrow(/service_unreachable/);
    const legacy = await connectChannel("legacy");
    const notices = noticesOf(legacy);
    await expect(legacy.subscribeResource({ uri: uriOf("a") })).rejects.toThrow(/service_unreachable/);
    url = live;
    await shows(() => expect(notices.lists).toBe(1));
  });
});
