import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { newSecret } from "../../../src/kb/webhooks/sign.ts";
import { ChatAccepted, ChatDelivery } from "../../../src/wire/chat.ts";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openReceiver, signedBy, type Receiver } from "../webhooks/receiver.ts";
import { ask, openAsking } from "./asking.ts";

const WAIT = { timeout: 20_000, interval: 20 };

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
});
