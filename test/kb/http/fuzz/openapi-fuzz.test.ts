import * as fc from "fast-check";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROUTES } from "../../../../src/wire/routes.ts";
import { typeOf } from "../../service/answer-check.ts";
import { createBody, fileForm, FIRST_STATE, openRunning, readText } from "../../service/running.ts";
import type { Running } from "../../service/running.ts";
import { fuzzRequests, SMALL_GIF } from "./requests.ts";
import type { ApiDocument, FuzzRequest } from "./requests.ts";
import { randomRuns } from "../../../random-runs.ts";

/** `npm run test:fuzz` sends 20,000. */
const REQUESTS = Number(process.env["KBSYNC_FUZZ_REQUESTS"] ?? randomRuns(500));
/** Requests sent concurrently; a failure is due to one of this many. */
const BATCH = 10;
/** An answer that takes longer is a hang. The first image starts the recogniser, which takes some seconds. */
const HANG_MS = 45_000;
/** Recently created ids, for later requests. */
const IDS_MAX = 30;

let running: Running;
let agent: Agent;
let key: string;
let fileUrl: string;
let imageUrl: string;
let collection: string;
let document: ApiDocument;
/** Recent ids by kind. */
const pools = { resource: [] as string[], key: [] as string[], endpoint: [] as string[], agent: ["default"] };
const statuses = new Map<number, number>();

beforeAll(async () => {
  running = await openRunning();
  agent = new Agent({ connections: BATCH });
  key = await running.issueKey("local", ["admin"]);
  const { data } = (await running.send("POST", "/api/rag/resource", { body: createBody() })).json;
  pools.resource.push(data._id);
  collection = data.collectionId;
  fileUrl = (await running.send("POST", "/image/processing/upload", { body: fileForm("words") })).json
    .file_url;
  imageUrl = (await running.send("POST", "/files/upload", { body: fileForm(SMALL_GIF, "a.gif") })).json
    .file_url;
  document = (await running.send("GET", "/openapi.json")).json;
}, 60_000);
afterAll(async () => {
  await agent.destroy();
  await running.close();
});

function poolOf(route: string): string[] {
  if (route.startsWith("/v1/keys")) return pools.key;
  if (route.startsWith("/v1/agents")) return pools.agent;
  return route.startsWith("/v1/webhooks") ? pools.endpoint : pools.resource;
}

/** Replaces the placeholders by existing ids and addresses. */
function filled(text: string, pool = pools.resource): string {
  return text
    .replaceAll(/@id(\d)/g, (_all, at: string) => pool.at(-1 - Number(at)) ?? "0".repeat(24))
    .replaceAll("@collection", collection)
    .replaceAll("@agent", pools.agent.at(-1) ?? "default")
    .replaceAll("@image", imageUrl)
    .replaceAll("@file", fileUrl);
}

async function expectNoFault(sent: FuzzRequest): Promise<void> {
  const url = running.url + filled(sent.path, poolOf(sent.route));
  const answer = await request(url, {
    dispatcher: agent,
    method: sent.method as "GET", // undici takes any method; its type lists the common ones
    headers: { pauthkey: key, ...mapped(sent.headers) },
    signal: AbortSignal.timeout(HANG_MS),
    ...(sent.body === undefined
      ? {}
      : { body: typeof sent.body === "string" ? filled(sent.body) : sent.body }),
  });
  const { statusCode: status } = answer;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const text = await readText(answer.body, sent.route === ROUTES.events ? FIRST_STATE : undefined);
  expect(status >= 500 && status !== 503 ? text : undefined).toBeUndefined();
  running.check({ method: sent.method, path: url, status, contentType: typeOf(answer.headers), text });
  const type = typeOf(answer.headers);
  if (status >= 300 || (type !== "application/json" && type !== "application/x-ndjson")) return;
  for (const line of text.split("\n").filter((one) => one !== "")) {
    keepId(poolOf(sent.route), JSON.parse(line).data?._id);
  }
}

function mapped(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)]));
}

function keepId(pool: string[], id: unknown): void {
  if (typeof id !== "string" || pool.includes(id)) return;
  pool.push(id);
  if (pool.length > IDS_MAX) pool.shift();
}

it(
  `${REQUESTS} requests from the API document give no fault and no hang, and every answer is as declared`,
  async () => {
    const batch = fc.array(fuzzRequests(document), { minLength: BATCH, maxLength: BATCH });
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        await Promise.all(requests.map(expectNoFault));
      }),
      { numRuns: Math.ceil(REQUESTS / BATCH), endOnFailure: true },
    );
    // Neither all refused nor all accepted: the requests reach the operations.
    const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    const good = [...statuses].filter(([status]) => status < 300).reduce((sum, [, count]) => sum + count, 0);
    expect(good / total).toBeGreaterThan(0.1);
    expect(good / total).toBeLessThan(0.9);
    expect((await running.send("GET", "/v1/health")).json.status).toBe("ready");
    expect(running.log()).not.toContain("request failed");
    // oxlint-disable-next-line no-console -- the figures are the point of a long run
    console.info(`${total} requests:`, Object.fromEntries([...statuses].toSorted(([a], [b]) => a - b)));
  },
  60_000 + REQUESTS * 60,
);
