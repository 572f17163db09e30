import { afterEach, beforeEach, expect, it } from "vitest";
import { request } from "undici";
import { listenForMonitoring, type Listener } from "../../src/metrics/listener.ts";
import { openMetrics } from "../../src/metrics/metrics.ts";

let listener: Listener;
let reason: string | undefined;
let isBroken: boolean;
beforeEach(async () => {
  reason = undefined;
  isBroken = false;
  const metrics = openMetrics("0.0.0-test");
  listener = await listenForMonitoring({
    host: "127.0.0.1",
    port: 0,
    metrics: { text: () => (isBroken ? Promise.reject(new Error("no")) : metrics.text()) },
    notReady: () => reason,
  });
});
afterEach(() => listener.close());

async function ask(path: string, method: "GET" | "HEAD" | "POST" = "GET") {
  const { statusCode, headers, body } = await request(`${listener.url}${path}`, { method });
  return { status: statusCode, headers, text: await body.text() };
}

it("serves metrics, health and readiness", async () => {
  const { status, headers, text } = await ask("/metrics?x=1");
  expect({ status, type: headers["content-type"] }).toEqual({
    status: 200,
    type: "text/plain; version=0.0.4; charset=utf-8",
  });
  expect(text).toContain('kbsync_build_info{version="0.0.0-test"');
  expect(await ask("/healthz")).toMatchObject({ status: 200, text: "alive\n" });
  expect(await ask("/readyz")).toMatchObject({ status: 200, text: "ready\n" });
  expect(await ask("/healthz", "HEAD")).toMatchObject({ status: 200, text: "" });
});

it("reports why the process is not ready, with Retry-After", async () => {
  reason = "shutting down";
  expect(await ask("/readyz")).toMatchObject({
    status: 503,
    text: "shutting down\n",
    headers: { "retry-after": "5" },
  });
  expect((await ask("/healthz")).status).toBe(200);
});

it("refuses other methods and paths", async () => {
  expect((await ask("/")).status).toBe(404);
  expect(await ask("/metrics", "POST")).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
});

it("answers 500 when the metrics cannot be read", async () => {
  isBroken = true;
  expect((await ask("/metrics")).status).toBe(500);
  isBroken = false;
  expect((await ask("/metrics")).status).toBe(200);
});

it("names an address in use, and what to do", async () => {
  const { port } = new URL(listener.url);
  await expect(
    listenForMonitoring({
      host: "127.0.0.1",
      port: Number(port),
      metrics: openMetrics("0"),
      notReady: () => undefined,
    }),
  ).rejects.toMatchObject({
    code: "address_in_use",
    message: `cannot listen for metrics on 127.0.0.1:${port}: another program does`,
    hint: expect.stringContaining("Set metrics"),
  });
});
