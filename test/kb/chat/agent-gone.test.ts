import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { fileForm, type Running } from "../service/running.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { ask, eventsOf, filesOf, openAsking } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

// Deletes an agent while it works. Later questions are in threads.test.ts.

/** Generous, for a busy machine. */
const WAIT = { timeout: 60_000, interval: 20 };
const GONE = { code: "agent_not_found", field: "agent_id" };

let endpoint: ModelEndpoint;
let receiver: Receiver;
let running: Running;
let admin: string;
/** Runs before an upload is written to the store. */
let beforeFile: () => Promise<unknown>;
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  receiver = await openReceiver();
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        addFile: async (file, sameTransaction) => {
          await beforeFile();
          return store.records.addFile(file, sameTransaction);
        },
      },
    });
  running = await openAsking(endpoint, {}, { wrapStore });
  admin = await running.issueKey("local", ["admin"]);
}, 60_000);
afterAll(async () => {
  await running.close();
  await endpoint.close();
  await receiver.close();
});
beforeEach(async () => {
  beforeFile = async () => undefined;
  endpoint.behave = () => ({ kind: "answer", text: "Well." });
  await make();
});

const make = () =>
  running.send("POST", "/v1/agents", { key: admin, body: { id: "passing", name: "Passing" } });
const remove = () => running.send("DELETE", "/v1/agents/passing", { key: admin });
/** What the agent of that id remembers of a thread: messages beside prompt and question. */
const remembers = async (thread_id: string): Promise<number> => {
  await make();
  endpoint.behave = () => ({ kind: "answer", text: "Well." });
  await ask(running, { agent_id: "passing", user: "What did I say?", thread_id });
  return (endpoint.requests.at(-1)?.messages.length ?? 0) - 2;
};
const reported = (path: string) =>
  receiver.messages.filter((each) => each.path === path).map(({ json }) => json);

describe("an agent that is deleted", { timeout: 120_000 }, () => {
  it("an answer whose agent is deleted while it streams ends with the failure as an event and is not remembered", async () => {
    endpoint.behave = async () => {
      await remove();
      return { kind: "answer", text: "Too late for all of this." };
    };
    const question = { agent_id: "passing", user: "Hello", thread_id: "stream", stream: true };
    const { status, text } = await ask(running, question);
    const events = eventsOf(text);
    expect([status, events[0]?.event]).toEqual([200, "delta"]);
    expect(events.at(-1)).toMatchObject({ event: "error", data: { success: false, error: GONE } });
    expect(await remembers("stream")).toBe(0);
  });

  it("an answer without a thread completes although its agent is deleted meanwhile", async () => {
    endpoint.behave = async () => {
      await remove();
      return { kind: "answer", text: "Just in time." };
    };
    const { status, json } = await ask(running, { agent_id: "passing", user: "Hello" });
    expect([status, json.response.data.content]).toEqual([200, "Just in time."]);
  });

  /** What the receiver gets; the service has nothing more to do then. */
  const expectNotified = async (path: string): Promise<void> => {
    await vi.waitFor(() => expect(reported(path)).toHaveLength(1), WAIT);
    expect(reported(path)).toMatchObject([{ success: false, error: GONE, variables: {} }]);
    expect(await running.store.queue.figures("chat", undefined)).toMatchObject({ waiting: 0 });
    expect(await remembers(path)).toBe(0);
    expect(reported(path)).toHaveLength(1);
  };
  const question = (thread_id: string) => ({ agent_id: "passing", user: "Hello", thread_id });

  it("a webhook receives the failure once if the agent is deleted while it answers, and nothing is remembered", async () => {
    endpoint.behave = async () => {
      await remove();
      return { kind: "answer", text: "Too late." };
    };
    const webhook = { url: `${receiver.url}/answering` };
    expect((await ask(running, { ...question("/answering"), webhook })).status).toBe(202);
    await expectNotified("/answering");
  });

  it("a webhook receives the failure if the agent is deleted while its question waits", async () => {
    const held = Promise.withResolvers<void>();
    endpoint.behave = async () => {
      await held.promise;
      return { kind: "answer", text: "Too late." };
    };
    // A thread answers one question at a time, so the second waits for the first.
    const asked = endpoint.requests.length;
    const first = ask(running, question("/waiting"));
    await vi.waitFor(() => expect(endpoint.requests.length).toBe(asked + 1), WAIT);
    const webhook = { url: `${receiver.url}/waiting` };
    expect((await ask(running, { ...question("/waiting"), webhook })).status).toBe(202);
    await remove();
    held.resolve();
    expect((await first).json.error).toMatchObject(GONE);
    await expectNotified("/waiting");
  });

  it("deleting `default` restores its configuration, and its threads, answers and uploads stay", async () => {
    const at = { agent_id: "default", thread_id: "reset" };
    const change = () => running.send("PUT", "/v1/agents/default", { key: admin, body: { name: "Changed" } });
    const reset = () => running.send("DELETE", "/v1/agents/default", { key: admin });
    await change();
    endpoint.behave = async () => {
      await reset();
      return { kind: "answer", text: "All the same." };
    };
    const { status, json } = await ask(running, { ...at, user: "Hello" });
    expect([status, json.response?.data.content]).toEqual([200, "All the same."]);
    await change();
    beforeFile = reset;
    const png = sharp({ create: { width: 8, height: 8, channels: 3, background: "#0c0" } }).png();
    const form = fileForm(await png.toBuffer(), "green.png");
    for (const [name, value] of Object.entries(at)) form.append(name, value);
    expect((await running.send("POST", "/files/upload", { body: form })).status).toBe(200);
    endpoint.behave = () => ({ kind: "answer", text: "Well." });
    await ask(running, { ...at, user: "What did I say?" });
    expect(endpoint.requests.at(-1)?.messages).toHaveLength(4);
    expect(JSON.stringify(endpoint.requests.at(-1))).toContain("image_url");
  });

  it("an upload to a thread whose agent is deleted meanwhile answers 404 and leaves neither file nor link", async () => {
    const before = await filesOf(running);
    beforeFile = remove;
    const png = sharp({ create: { width: 8, height: 8, channels: 3, background: "#0c0" } }).png();
    const form = fileForm(await png.toBuffer(), "green.png");
    form.append("agent_id", "passing");
    form.append("thread_id", "upload");
    const { status, json } = await running.send("POST", "/files/upload", { body: form });
    expect({ status, error: json.error }).toMatchObject({ status: 404, error: GONE });
    expect(await filesOf(running)).toEqual(before);
    expect(await remembers("upload")).toBe(0);
    expect(JSON.stringify(endpoint.requests.at(-1))).not.toContain("image_url");
  });
});
