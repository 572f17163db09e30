import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import type { Running } from "../service/running.ts";
import { ask, openAsking } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

// Questions of one thread whose answers go to webhooks are answered in the order in which they were accepted.

/** Generous, for a busy machine. */
const WAIT = { timeout: 60_000, interval: 10 };
/** Longest backoff of a question on a full disk. */
const LONGEST_MS = 10 * 60 * 1000;

let endpoint: ModelEndpoint;
let receiver: Receiver;
let running: Running;
let nowMs = Date.now();
/** Threads whose next question finds the store busy, and those whose next answer finds the disk full. */
const busy = new Set<string>();
const full = new Set<string>();
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  receiver = await openReceiver();
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        thread: async (query) => {
          if (busy.delete(query.threadId)) throw new KbsyncError("busy", { code: "store_busy" });
          return store.records.thread(query);
        },
        addTurn: async (turn) => {
          if (full.delete(turn.threadId ?? "")) throw new KbsyncError("no space", { code: "disk_full" });
          return store.records.addTurn(turn);
        },
      },
    });
  running = await openAsking(endpoint, {}, { wrapStore, nowMs: () => nowMs });
}, 60_000);
afterAll(async () => {
  await running.close();
  await endpoint.close();
  await receiver.close();
});
beforeEach(() => {
  endpoint.behave = () => ({ kind: "answer", text: "Well." });
});

const send = async (user: string, thread_id: string): Promise<void> => {
  const webhook = { url: `${receiver.url}/${thread_id}` };
  expect((await ask(running, { user, thread_id, webhook })).status).toBe(202);
};
const reported = (thread: string) => receiver.messages.filter(({ path }) => path === `/${thread}`).length;
/** The requests to the model in order: each question, and the number of its messages. */
const asked = (from: number) =>
  endpoint.requests.slice(from).map(({ messages }) => [messages.at(-1)?.content, messages.length]);

it("answers a thread's questions in order if the first finds the service busy and restarts", async () => {
  const from = endpoint.requests.length;
  busy.add("busy");
  await send("first", "busy");
  await send("second", "busy");
  await vi.waitFor(() => expect(reported("busy")).toBe(2), WAIT);
  expect(asked(from)).toEqual([
    ["first", 2],
    ["second", 4],
  ]);
});

it("answers a thread's questions in order if the first waits for a full disk, and does not delay other threads", async () => {
  const from = endpoint.requests.length;
  full.add("full");
  await send("first", "full");
  await vi.waitFor(() => expect(full.size).toBe(0), WAIT);
  await send("second", "full");
  await send("other", "roomy");
  await vi.waitFor(() => expect(reported("roomy")).toBe(1), WAIT);
  expect(asked(from)).toEqual([
    ["first", 2],
    ["other", 2],
  ]);
  nowMs += LONGEST_MS;
  await send("another", "roomy");
  await vi.waitFor(() => expect(reported("full")).toBe(2), WAIT);
  expect(asked(from).filter(([user]) => user === "first" || user === "second")).toEqual([
    ["first", 2],
    ["first", 2],
    ["second", 4],
  ]);
});

it("a thread with many questions does not delay other threads", async () => {
  const held = Promise.withResolvers<void>();
  endpoint.behave = async ({ messages }) => {
    if (messages.at(-1)?.content === "many 0") await held.promise;
    return { kind: "answer", text: "Well." };
  };
  const from = endpoint.requests.length;
  const many = Array.from({ length: 20 }, (_, at) => `many ${at}`);
  for (const user of many) await send(user, "many");
  await send("single", "single");
  await vi.waitFor(() => expect(reported("single")).toBe(1), WAIT);
  expect(asked(from).map(([user]) => user)).toEqual(["many 0", "single"]);
  held.resolve();
  await vi.waitFor(() => expect(reported("many")).toBe(many.length), WAIT);
  expect(asked(from).map(([user]) => user)).toEqual(["many 0", "single", ...many.slice(1)]);
});
