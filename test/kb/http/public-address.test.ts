import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "kbsync-public-"));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

async function upload(running: Running): Promise<string> {
  const { json } = await running.send("POST", "/image/processing/upload", {
    body: fileForm("A note.", "a.txt"),
  });
  return json.file_url;
}
const create = (running: Running, url: string, title: string) =>
  running.send("POST", "/api/rag/resource", { body: createBody({ content: undefined, url, title }) });

it("returns the public address of files once it is configured, and recognises earlier addresses", async () => {
  const alone = await openRunning({ stateDir });
  const before = await upload(alone);
  expect(before).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/files\//);
  const { json: first } = await create(alone, before, "first");
  const unused = await upload(alone);
  await alone.close();

  const open = await openRunning({ stateDir, host: "0.0.0.0", resourcesUrl: "https://kb.example/below" });
  const now = await upload(open);
  expect(now).toMatch(/^https:\/\/kb\.example\/below\/files\//);
  const made = [await create(open, now, "second"), await create(open, unused, "third")];
  expect(made.map(({ status }) => status)).toEqual([201, 201]);
  const { json } = await open.send("GET", `/api/rag/resource/${first.data._id}`);
  expect(json.data.url).toBe(before.replace(/^http:\/\/[^/]+/, "https://kb.example/below"));
  await open.close();
});

it("refuses every request without a key if the service listens on other addresses", async () => {
  const open = await openRunning({ stateDir, host: "0.0.0.0", filesNeedKey: true });
  expect(open.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const file = await upload(open);
  const asked = [
    await open.send("GET", "/api/rag/collections", { key: null }),
    await open.send("POST", "/api/rag/resource", { key: null, body: createBody() }),
    await open.send("GET", file, { key: null }),
    await open.send("GET", file),
    await open.send("GET", "/metrics", { key: null }),
  ];
  expect(asked.map(({ status }) => status)).toEqual([401, 401, 401, 200, 404]);
  await open.close();
});

it.each([
  ["on this machine only", {}, 200],
  ["to nobody if the service listens on other addresses", { host: "0.0.0.0" }, 404],
  ["to nobody if the service is behind a proxy", { resourcesUrl: "https://kb.example" }, 404],
])("serves metrics %s", async (_name, options, expected) => {
  const text = { contentType: "text/plain", text: "kbsync_build_info 1\n" };
  const open = await openRunning({ stateDir, ...options, metrics: () => Promise.resolve(text) });
  const { status } = await open.send("GET", "/metrics", { key: null });
  expect(status).toBe(expected);
  await open.close();
});
