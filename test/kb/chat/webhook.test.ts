import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { request } from "undici";
import { generateKey } from "../../../src/kb/resources/keys.ts";
import { newSecret } from "../../../src/kb/webhooks/sign.ts";
import { ChatAccepted, ChatDelivery } from "../../../src/wire/chat.ts";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openReceiver, signedBy, type Receiver } from "../webhooks/receiver.ts";
import { ask, CHAT, openAsking } from "./asking.ts";

/** Generous: three programs are started, on a machine that may have other work. */
const WAIT = { timeout: 120_000, interval: 50 };
const PROGRAM = fileURLToPath(new URL("../service/killed-service.ts", import.meta.url));

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
  it("is accepted at once and delivered signed; a failure is delivered too; both forms are taken", async () => {
    const running = await openAsking(endpoint);
    try {
      const secret = newSecret();
      endpoint.behave = ({ messages }) =>
        JSON.stringify(messages).includes("fail")
          ? { kind: "fail", status: 400, message: "out of order" }
          : { kind: "answer", text: "Forty." };
      const webhook = { url: `${receiver.url}/ours`, secret, headers: { "X-Team": "harbour" } };
      const accepted = await ask(running, { user: "Tons?", variables: { a: 1 }, webhook, thread_id: "w" });
      expect(accepted.status).toBe(202);
      const { message_id } = ChatAccepted.strict().parse(accepted.json);
      await vi.waitFor(() => expect(messagesTo("/ours")).toHaveLength(1), WAIT);
      const [message] = messagesTo("/ours");
      expect(message?.id).toBe(`msg_${message_id}`);
      expect(message && signedBy(message, [secret])).toEqual([secret]);
      expect(message?.headers["x-team"]).toBe("harbour");
      const delivery = ChatDelivery.parse(message?.json);
      expect(delivery).toMatchObject({
        success: true,
        message_id,
        variables: { a: 1 },
        response: { data: { content: "Forty.", message_id, finish_reason: "completed" } },
      });
      // It is part of its thread.
      await ask(running, { user: "Sure?", thread_id: "w" });
      expect(endpoint.requests.at(-1)?.messages).toHaveLength(4);

      const cred = { url: `${receiver.url}/original`, headers: {} };
      const settings = { response_format: { type: "webhook", cred } };
      const failing = await ask(running, { user: "fail", settings });
      expect(failing.status).toBe(202);
      await vi.waitFor(() => expect(messagesTo("/original")).toHaveLength(1), WAIT);
      expect(messagesTo("/original")[0]?.json).toMatchObject({
        success: false,
        message_id: failing.json.message_id,
        error: { code: "model_failed", message: expect.stringContaining("out of order") },
      });
      expect(await running.store.chatJobs(10)).toEqual([]);
    } finally {
      await running.close();
    }
  }, 240_000);

  it("kill -9 while the model answers, and between answer and delivery, loses nothing", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-chat-kill-"));
    const key = generateKey();
    const start = async () => {
      const child = spawn(process.execPath, [PROGRAM, stateDir, key, endpoint.url], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [url] = (await once(createInterface(child.stdout), "line")) as [string]; // it prints nothing else
      return { child, url, kill: async () => (child.kill("SIGKILL"), await once(child, "exit")) };
    };
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
      await service.kill();
      // Answered, but nobody took the message yet.
      ready = true;
      receiver.answer = () => new Promise<never>(() => undefined);
      service = await start();
      const second = await post("/late");
      await vi.waitFor(() => {
        expect(messagesTo("/stalled").length).toBeGreaterThan(0);
        expect(messagesTo("/late").length).toBeGreaterThan(0);
      }, WAIT);
      await service.kill();
      const before = endpoint.requests.length;
      receiver.answer = () => ({ status: 204 });
      service = await start();
      const seen = { stalled: messagesTo("/stalled").length, late: messagesTo("/late").length };
      await vi.waitFor(() => {
        expect(messagesTo("/stalled").length).toBeGreaterThan(seen.stalled);
        expect(messagesTo("/late").length).toBeGreaterThan(seen.late);
      }, WAIT);
      await service.kill();
      const ids = (path: string) => new Set(messagesTo(path).map(({ id }) => id));
      expect([ids("/stalled"), ids("/late")]).toEqual([
        new Set([`msg_${first}`]),
        new Set([`msg_${second}`]),
      ]);
      // What was answered is delivered again, not asked again.
      expect(endpoint.requests.length).toBe(before);
    } finally {
      await rm(stateDir, { recursive: true });
    }
  }, 600_000);
});
