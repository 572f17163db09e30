import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { request } from "undici";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import { ENDPOINT_KEY, openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { killProcess, startProcess } from "../service/process.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { ask, CHAT, openAsking } from "./asking.ts";

/** Generous: three programs are started, on a machine that may have other work. */
const WAIT = { timeout: 120_000, interval: 50 };

let endpoint: ModelEndpoint;
let receiver: Receiver;
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  receiver = await openReceiver();
});
afterAll(async () => {
  await endpoint.close();
  await receiver.close();
});
const messagesTo = (path: string) => receiver.messages.filter((message) => message.path === path);

describe("an answer by webhook", () => {
  it("kill -9 during the model's answer, and between answer and delivery, loses no answer by webhook", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-chat-kill-"));
    const key = generateKey();
    const languageModel = { baseUrl: endpoint.url, model: "seeing", apiKey: ENDPOINT_KEY };
    const start = () => startProcess({ stateDir, key, languageModel });
    let ready = false;
    try {
      let service = await start();
      const post = async (path: string) => {
        const body = { agent_id: "default", user: `Question ${path}`, webhook: { url: receiver.url + path } };
        const headers = { pauthkey: key, "content-type": "application/json" };
        const answer = await request(service.url + CHAT, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        return ((await answer.body.json()) as { message_id: string }).message_id; // a 202 answers so
      };
      // While the model answers.
      endpoint.behave = () => (ready ? { kind: "answer", text: "Here." } : { kind: "stall" });
      const asked = endpoint.requests.length;
      const first = await post("/stalled");
      await vi.waitFor(() => expect(endpoint.requests.length).toBe(asked + 1), WAIT);
      await killProcess(service.child);
      // Answered, but the message is not delivered yet.
      ready = true;
      receiver.answer = () => new Promise<never>(() => undefined);
      service = await start();
      const second = await post("/late");
      await vi.waitFor(() => {
        expect(messagesTo("/stalled").length).toBeGreaterThan(0);
        expect(messagesTo("/late").length).toBeGreaterThan(0);
      }, WAIT);
      await killProcess(service.child);
      const before = endpoint.requests.length;
      receiver.answer = () => ({ status: 204 });
      service = await start();
      const seen = { stalled: messagesTo("/stalled").length, late: messagesTo("/late").length };
      await vi.waitFor(() => {
        expect(messagesTo("/stalled").length).toBeGreaterThan(seen.stalled);
        expect(messagesTo("/late").length).toBeGreaterThan(seen.late);
      }, WAIT);
      await killProcess(service.child);
      const ids = (path: string) => new Set(messagesTo(path).map(({ id }) => id));
      expect([ids("/stalled"), ids("/late")]).toEqual([
        new Set([`msg_${first}`]),
        new Set([`msg_${second}`]),
      ]);
      // A stored answer is delivered again; its question is not asked again.
      expect(endpoint.requests.length).toBe(before);
    } finally {
      await rm(stateDir, { recursive: true });
    }
  }, 600_000);

  it("a question survives any number of stops, and the next start that runs long enough answers it", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-chat-stops-"));
    try {
      endpoint.behave = () => ({ kind: "stall" });
      const webhook = { url: `${receiver.url}/stopped` };
      for (let stops = 0; stops < 5; stops++) {
        const asked = endpoint.requests.length;
        const running = await openAsking(endpoint, {}, { stateDir });
        if (stops === 0) await ask(running, { user: "Hello", webhook });
        await vi.waitFor(() => expect(endpoint.requests.length).toBe(asked + 1), WAIT);
        await running.close();
      }
      endpoint.behave = () => ({ kind: "answer", text: "At last." });
      const running = await openAsking(endpoint, {}, { stateDir });
      await vi.waitFor(() => expect(messagesTo("/stopped")).toHaveLength(1), WAIT);
      await running.close();
      expect(messagesTo("/stopped")[0]?.json).toMatchObject({
        success: true,
        response: { data: { content: "At last." } },
      });
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});
