import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";
import { stubCredentials } from "./bucket-fixture.ts";
import { BUCKET, openS3Server, type S3Server } from "./s3-server.ts";

const TIMEOUTS = { answerMs: 500, transferMs: 500 };
const UPLOAD = "/image/processing/upload";
const RESOURCE = "/api/rag/resource";

let server: S3Server;
const opened: Running[] = [];
async function open(options: Parameters<typeof openRunning>[0] = {}): Promise<Running> {
  const files = { kind: "bucket", bucket: BUCKET, prefix: "kb/", endpoint: server.endpoint } as const;
  const running = await openRunning({ files: { ...files, timeouts: TIMEOUTS }, ...options });
  opened.push(running);
  return running;
}
beforeEach(async () => {
  stubCredentials();
  server = await openS3Server();
});
afterEach(async () => {
  server.fault = undefined;
  for (const running of opened.splice(0).toReversed()) await running.close();
  await server.close();
  vi.unstubAllEnvs();
});

const upload = (running: Running, text: string, headers = {}) =>
  running.send("POST", UPLOAD, { body: fileForm(text), headers });
const create = (running: Running, url: string, headers = {}) =>
  running.send("POST", RESOURCE, { body: createBody({ content: undefined, url }), headers });
/** Opens the service again, with no copy of any file. */
async function reopened(running: Running): Promise<Running> {
  await running.service.close();
  return open({ stateDir: running.stateDir });
}

describe("a service with a bucket", () => {
  it("a service with a bucket has uploads in the bucket alone, and serves them whole and in ranges", async () => {
    const first = await open();
    const { json } = await upload(first, "tides and harbours");
    const token = new URL(json.file_url).pathname.split("/")[2] ?? "";
    expect([...server.objects.keys()]).toEqual([`kb/${token}`]);
    expect(existsSync(join(first.stateDir, "uploads"))).toBe(false);
    const second = await reopened(first);
    expect(await readdir(join(first.stateDir, "file-cache", "files"))).toEqual([]);
    const url = json.file_url.replace(first.url, second.url);
    expect(await second.send("GET", url)).toMatchObject({ status: 200, text: "tides and harbours" });
    expect(await second.send("GET", url, { headers: { range: "bytes=6-8" } })).toMatchObject({
      status: 206,
      text: "and",
    });
    const { _id: id } = (await create(second, url)).json.data;
    expect((await second.send("GET", `${RESOURCE}/${id}`)).json.data.content).toBe("tides and harbours");
  });

  it("a service with a bucket never serves or reads an object that was altered", async () => {
    const first = await open();
    const { json } = await upload(first, "tides");
    const [key = ""] = server.objects.keys();
    server.setObject(key, "TIDES");
    const second = await reopened(first);
    const url = json.file_url.replace(first.url, second.url);
    expect(await second.send("GET", url)).toMatchObject({
      status: 500,
      json: { error: { code: "file_damaged", hint: expect.stringContaining("Upload the file again") } },
    });
    expect(await create(second, url)).toMatchObject({
      status: 500,
      json: { error: { code: "file_damaged" } },
    });
    server.objects.delete(key);
    expect((await second.send("GET", url)).status).toBe(404);
    expect(await create(second, url)).toMatchObject({
      status: 400,
      json: { error: { field: "url", hint: "Upload it again." } },
    });
  });

  it.each<[string, NonNullable<S3Server["fault"]>]>([
    ["is away", () => ({ kind: "drop" })],
    ["hangs", () => ({ kind: "hang" })],
    ["throttles", () => ({ kind: "status", status: 503, code: "SlowDown" })],
  ])("answers 503 with Retry-After while the bucket %s, and loses nothing", async (_name, fault) => {
    const first = await open();
    const { json } = await upload(first, "tides");
    server.fault = fault;
    const running = await reopened(first);
    const url = json.file_url.replace(first.url, running.url);
    const away = {
      status: 503,
      json: { error: { code: "files_unavailable" } },
      headers: { "retry-after": "5" },
    };
    expect(await running.send("GET", url)).toMatchObject(away);
    expect(await upload(running, "more", { "idempotency-key": "k" })).toMatchObject(away);
    const queued = await create(running, url, { prefer: "respond-async" });
    expect(queued.status).toBe(202);
    // Searches, and documents that need no file, are not affected.
    const body = createBody({ content: "harbours", owner_id: "other" });
    expect((await running.send("POST", RESOURCE, { body })).status).toBe(201);
    server.fault = undefined;
    const again = await upload(running, "more", { "idempotency-key": "k" });
    expect((await running.send("GET", again.json.file_url)).text).toBe("more");
    const path = `${RESOURCE}/${queued.json.data._id}`;
    await vi.waitFor(
      async () => {
        const { data } = (await running.send("GET", path)).json;
        expect(data.content).toBe("tides");
      },
      { timeout: 15_000, interval: 200 },
    );
    expect(running.log()).toContain("the bucket of uploaded files fails");
  });
});
