import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

let running: Running | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await running?.close();
});

/** Sends the head of a request without its body, and resolves when the service has read it. */
async function sendHead(at: Running, path: string, key: string, headers: string): Promise<Socket> {
  const socket = connect(Number(new URL(at.url).port), "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\npauthkey: ${key}\r\n${headers}\r\n\r\n`);
  return socket;
}

describe("open requests of one account", () => {
  it.each([
    ["searches without a body", "/rag/query", "content-type: application/json\r\ncontent-length: 100000"],
    [
      "creates that announce long bodies",
      "/api/rag/resource",
      "content-type: application/json\r\ncontent-length: 30000000",
    ],
    [
      "uploads that do not end",
      "/image/processing/upload",
      "content-type: multipart/form-data; boundary=x\r\ncontent-length: 1000000",
    ],
  ])("leaves searches and creates of other accounts possible: %s", async (_name, path, headers) => {
    running = await openRunning({ limits: { requests: 64, ingests: 32, bodyBytes: 64 * 1024 * 1024 } });
    const hostile = await running.issueKey("hostile");
    for (let count = 0; count < 80; count += 1) await sendHead(running, path, hostile, headers);
    await vi.waitFor(() => expect(running?.log()).toContain("requests are refused"), { timeout: 10_000 });

    const { data } = (await running.send("POST", "/api/rag/resource", { body: createBody() })).json;
    const search = { query: "moon", doc_id: data._id };
    const at = running;
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => at.send("POST", "/rag/query", { body: search })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    // One log line for all of them, without stacks.
    const refused = running
      .log()
      .split("\n")
      .filter((line) => line.includes("requests are refused"));
    expect(refused).toHaveLength(1);
    expect(refused[0]?.length).toBeLessThan(400);
  });

  it.each(["disk_full", "model_busy", "overloaded", "starting", "store_busy"] as const)(
    "logs refusals with %s once for many requests, and without stacks",
    async (code) => {
      const refuse = (): never => {
        throw new Refusal(code, "Later.");
      };
      running = await openRunning({
        wrapStore: (store) => withMethods(store, { records: { collections: refuse } }),
      });
      for (let count = 0; count < 3; count += 1) await running.send("GET", "/api/rag/collections");
      const log = running.log();
      expect(log.split("requests are refused: Later.")).toHaveLength(2);
      expect(log).not.toContain("request failed");
    },
  );

  it("counts no request of an account before the key is checked", async () => {
    running = await openRunning({ limits: { requests: 4 } });
    const json = "content-type: application/json\r\ncontent-length: 100";
    for (let count = 0; count < 20; count += 1) {
      const socket = await sendHead(running, "/rag/query", "kb_made_up", json);
      const [answer] = (await once(socket, "data")) as [Buffer];
      expect(answer.toString()).toContain("401");
    }
    expect(running.log()).not.toContain("requests are refused");
  });

  it.each([
    ["with a content-length", "content-length: 12100", (body: string) => body],
    [
      "in chunks",
      "transfer-encoding: chunked",
      (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`,
    ],
  ])(
    "counts the bytes that arrived of a body %s until its client disconnects",
    async (_name, header, framed) => {
      running = await openRunning({ limits: { bodyBytes: 16 * 1024 } });
      const on = running;
      const another = await on.issueKey("another");
      const head = `content-type: application/json\r\n${header}`;
      const socket = await sendHead(on, "/api/rag/resource", on.key, head);
      socket.write(framed("x".repeat(12_000)));
      const create = async (): Promise<number> =>
        (
          await on.send("POST", "/api/rag/resource", {
            key: another,
            body: createBody({ content: "word ".repeat(1600) }),
          })
        ).status;
      await vi.waitFor(async () => expect(await create()).toBe(503), { timeout: 10_000 });
      socket.destroy();
      await vi.waitFor(async () => expect(await create()).toBe(201), { timeout: 10_000 });
    },
  );

  it("begins the request of another account before hundreds that arrived with it", async () => {
    running = await openRunning();
    const at = running;
    const answered: string[] = [];
    /** Opens a connection on which a first request was answered. Others are refused without any wait. */
    const open = async (account: string, key: string): Promise<() => void> => {
      const socket = connect(Number(new URL(at.url).port), "127.0.0.1");
      sockets.push(socket);
      const send = (path: string): void => {
        socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\npauthkey: ${key}\r\n\r\n`);
      };
      send("/api/rag/collections");
      await once(socket, "data");
      socket.on("data", () => answered.push(account));
      return () => send("/nothing");
    };
    const hostile = await at.issueKey("hostile");
    const flood = await Promise.all(Array.from({ length: 300 }, () => open("hostile", hostile)));
    const victim = await open("victim", await at.issueKey("victim"));
    for (const send of flood) send();
    victim();
    await vi.waitFor(() => expect(answered).toHaveLength(301), { timeout: 10_000 });
    expect(answered.indexOf("victim")).toBeLessThan(100);
  });

  it("accepts no more connections from one address than its share", async () => {
    running = await openRunning({ limits: { connectionsPerAddress: 3 } });
    const port = Number(new URL(running.url).port);
    const open = Array.from({ length: 6 }, () =>
      connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }),
    );
    sockets.push(...open);
    for (const socket of open) socket.on("error", () => undefined);
    const fromElsewhere = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.9" });
    sockets.push(fromElsewhere);
    await Promise.all(open.map((socket) => once(socket, "connect").catch(() => undefined)));
    await vi.waitFor(() => expect(running?.log()).toContain("too_many_connections"), { timeout: 10_000 });
    fromElsewhere.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    const [answer] = (await once(fromElsewhere, "data")) as [Buffer];
    expect(answer.toString()).toContain("200 OK");
  });
});

it("lets uploads of an account wait while hundreds of its documents do, and no other's", async () => {
  let hostileId = "";
  const on = (running = await openRunning({
    wrapStore: (store) =>
      withMethods(store, {
        queue: {
          figures: async (queue, accountId) => ({
            ...(await store.queue.figures(queue, accountId)),
            waiting: accountId === hostileId ? 500 : 0,
          }),
        },
      }),
  }));
  const hostile = await on.issueKey("hostile");
  hostileId = (await on.store.records.accounts()).find(({ name }) => name === "hostile")?.id ?? "";
  const upload = async (key: string): Promise<number> =>
    (await on.send("POST", "/image/processing/upload", { key, body: fileForm("words") })).status;
  const startMs = performance.now();
  let answered = 0;
  const uploads = Array.from({ length: 40 }, async () => {
    const status = await upload(hostile);
    answered += 1;
    return status;
  });
  await Promise.all(Array.from({ length: 25 }, () => upload(on.key)));
  expect(answered).toBeLessThan(40);
  expect(await Promise.all(uploads)).toEqual(Array.from({ length: 40 }, () => 200));
  expect(performance.now() - startMs).toBeGreaterThan(1900);
});
