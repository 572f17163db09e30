import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { awaitVectors } from "../../../src/cli/evaluation/vectors.ts";

const { signal } = new AbortController();
let server: Server;
let url: string;
/** Bodies of the next answers; the last one repeats. */
let answers: unknown[];
let asked: number;

beforeAll(async () => {
  server = createServer((_request, response) => {
    asked += 1;
    response.end(JSON.stringify(answers.length > 1 ? answers.shift() : answers[0]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const health = (isBackfilling: boolean, state = "ready") => ({
  success: true,
  embedder: { state },
  isBackfilling,
  tiers: { moderate: "words alone (BM25), because there is no model" },
});

const cases: readonly [
  what: string,
  tier: "fastest" | "moderate",
  given: unknown[],
  words: string[],
  asked: number,
][] = [
  ["asks nothing for the tier without vectors", "fastest", [health(true)], [], 0],
  ["goes on at once where all is embedded", "moderate", [health(false)], [], 1],
  [
    "waits while documents are being embedded, and says so once",
    "moderate",
    [health(true), health(true), health(false)],
    ["waiting until the service has embedded all documents"],
    3,
  ],
  [
    "goes on waiting after an answer that did not come",
    "moderate",
    [health(true), "late", health(true), health(false)],
    ["waiting until the service has embedded all documents"],
    4,
  ],
  [
    "waits no longer for a service that does not answer any more",
    "moderate",
    [health(true), "gone"],
    ["waiting until the service has embedded all documents"],
    4,
  ],
  [
    "says that there is no model",
    "moderate",
    [health(false, "off")],
    ["moderate searches by words alone (BM25), because there is no model"],
    1,
  ],
  ["goes on with a service that does not report it", "moderate", [{ success: true, status: "ok" }], [], 1],
];
it.each(cases)("%s", async (_what, tier, given, words, times) => {
  answers = [...given];
  asked = 0;
  const notified: string[] = [];
  await awaitVectors(url, tier, (text) => notified.push(text), signal);
  expect({ notified, asked }).toEqual({ notified: words, asked: times });
});

it("ends when it is stopped", async () => {
  answers = [health(true)];
  const stop = new AbortController();
  const waiting = awaitVectors(url, "moderate", () => stop.abort(new Error("stopped")), stop.signal);
  await expect(waiting).rejects.toThrow("aborted");
});
