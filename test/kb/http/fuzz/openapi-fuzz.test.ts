import * as fc from "fast-check";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import type { Route } from "../../../../src/kb/http/route-table.ts";
import { Failure } from "../../../../src/wire/failure.ts";
import { createBody, fileForm, openRunning } from "../../service/running.ts";
import type { Running } from "../../service/running.ts";
import { fuzzRequests, SMALL_GIF } from "./requests.ts";
import type { ApiDocument, FuzzRequest } from "./requests.ts";

/** `npm run test:fuzz` sends 20,000. */
const REQUESTS = Number(process.env["KBSYNC_FUZZ_REQUESTS"] ?? 500);
/** Sent side by side, as clients do; a failure names one of so many. */
const BATCH = 10;
/** An answer that takes longer is a hang: the heaviest of these requests is a text of 200 KB. */
const HANG_MS = 15_000;
/** Ids of what was made lately, to be asked for again. */
const IDS_MAX = 30;

let running: Running;
let agent: Agent;
let key: string;
let fileUrl: string;
let imageUrl: string;
let collection: string;
let document: ApiDocument;
/** By what they are ids of. */
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

/** Puts what exists in place of the placeholders. */
function filled(text: string, pool = pools.resource): string {
  return text
    .replaceAll(/@id(\d)/g, (_all, at: string) => pool.at(-1 - Number(at)) ?? "0".repeat(24))
    .replaceAll("@collection", collection)
    .replaceAll("@agent", pools.agent.at(-1) ?? "default")
    .replaceAll("@image", imageUrl)
    .replaceAll("@file", fileUrl);
}

async function expectNoFault(sent: FuzzRequest): Promise<void> {
  const answer = await request(running.url + filled(sent.path, poolOf(sent.route)), {
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
  const type = answer.headers["content-type"];
  expect(problemOf(sent, status, String(type), await answer.body.text())).toBeUndefined();
}

/** What is wrong with an answer: a fault, or a body that is not as the document says. */
function problemOf(sent: FuzzRequest, status: number, type: string, text: string): string | undefined {
  const isFault = status >= 500 && status !== 503;
  if (isFault) return `status ${status}: ${text}`;
  const isFile = sent.route.startsWith("/files/") && status < 300;
  if (status === 304 || sent.method === "HEAD" || isFile) return undefined;
  if (type.startsWith("text/event-stream")) return problemOfEvents(sent, text);
  const isLines = routeOf(sent)?.doc?.lines === true && status < 300;
  const expected = isLines ? "application/x-ndjson" : "application/json; charset=utf-8";
  if (type !== expected) return `status ${status} of type ${type}`;
  const declared = status < 300 ? routeOf(sent)?.doc?.answers[status] : Failure;
  if (!(declared instanceof z.ZodType)) return `no answer ${status} is declared`;
  for (const line of isLines ? text.split("\n").filter((one) => one !== "") : [text]) {
    const json = JSON.parse(line);
    if (status < 300) keepId(poolOf(sent.route), json.data?._id);
    const { error } = declared.safeParse(json);
    if (error !== undefined) return `an answer ${status} that is not as declared: ${error.message}: ${line}`;
  }
  return undefined;
}

/** Where the document says so an answer may come in pieces; it ends with the whole, or with why there is none. */
function problemOfEvents(sent: FuzzRequest, text: string): string | undefined {
  const doc = routeOf(sent)?.doc;
  if (doc?.events === undefined) return "events where none are declared";
  const [, name, data = ""] = /(?:^|\n\n)event: (completed|error)\ndata: (.*)\n\n$/.exec(text) ?? [];
  const declared = name === "completed" ? doc.answers[200] : Failure;
  if (name === undefined || !(declared instanceof z.ZodType)) return `events without an end: ${text}`;
  const { error } = declared.safeParse(JSON.parse(data));
  return error === undefined ? undefined : `a last event that is not as declared: ${error.message}: ${data}`;
}

function mapped(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)]));
}

function keepId(pool: string[], id: unknown): void {
  if (typeof id !== "string" || pool.includes(id)) return;
  pool.push(id);
  if (pool.length > IDS_MAX) pool.shift();
}

function routeOf({ method, route }: FuzzRequest): Route | undefined {
  const url = route.replaceAll(/\{(\w+)\}/g, ":$1");
  return running.service.routes().find((one) => one.method === method && one.url === url);
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
    // Neither all refused nor all taken: the requests reach what they are to try.
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
