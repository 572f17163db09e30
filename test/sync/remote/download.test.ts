import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { expect, it } from "vitest";
import { download } from "../../../src/sync/remote/download.ts";

const date = (ms: number): string => new Date(ms).toUTCString();

it.each([
  { status: 429, headers: { "retry-after": "30" }, retryAfterMs: 30_000 },
  { status: 503, headers: { "retry-after": date(60_000), date: date(0) }, retryAfterMs: 60_000 },
  { status: 500, headers: {}, retryAfterMs: undefined },
])("a file host's wish is told: $status", async ({ status, headers, retryAfterMs }) => {
  const server = createServer((_, answer) => {
    answer.writeHead(status, headers as Record<string, string>);
    answer.end("busy");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const request = { path: "/f", headers: {}, signal: new AbortController().signal };
  const reply = await download(pool, request, 4, async () => {}, 0);
  expect(reply).toMatchObject({ kind: "later", acted: "no", retryAfterMs });
  await pool.destroy();
  server.close();
});
