import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { newSecret } from "../../../src/kb/webhooks/sign.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { ChatAccepted, ChatDelivery } from "../../../src/wire/chat.ts";
import { type Behaviour, openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { queuesOf } from "../service/running.ts";
import { openReceiver, signedBy, type Receiver } from "../webhooks/receiver.ts";
import { ask, CHAT, openAsking, remember } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

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
  it("accepts a question with a webhook at once, delivers its signed answer or failure, and accepts both forms", async () => {
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
      const { message_id, signed } = ChatAccepted.strict().parse(accepted.json);
      expect(signed).toBe(true);
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
      // The answer is part of its thread.
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
      expect(await running.store.queue.figures("chat", undefined)).toMatchObject({ waiting: 0 });
    } finally {
      await running.close();
    }
  }, 240_000);

  it.each<[string, (url: string) => object]>([
    ["a webhook without a secret", (url) => ({ webhook: { url } })],
    [
      "the original's form, which has no secret",
      (url) => ({ settings: { response_format: { type: "webhook", cred: { url } } } }),
    ],
  ])("announces an unsigned delivery, and sends it, for %s", async (name, target) => {
    const running = await openAsking(undefined);
    const path = `/${encodeURIComponent(name)}`;
    try {
      const accepted = await ask(running, { user: "Hello", ...target(receiver.url + path) });
      expect(accepted).toMatchObject({ status: 202, json: { signed: false } });
      expect(accepted.json.message).toContain("not signed");
      await vi.waitFor(() => expect(messagesTo(path)).toHaveLength(1), WAIT);
      expect(messagesTo(path)[0]?.headers).not.toHaveProperty("webhook-signature");
    } finally {
      await running.close();
    }
  });

  it("asks a question once, however often it is sent under its Idempotency-Key", async () => {
    const running = await openAsking(undefined);
    try {
      const send = (user: string, key = "q1") =>
        running.send("POST", CHAT, {
          body: { agent_id: "default", user, webhook: { url: `${receiver.url}/once`, secret: newSecret() } },
          headers: { "idempotency-key": key },
        });
      const webhook = { url: `${receiver.url}/once`, secret: newSecret() };
      const body = { agent_id: "default", user: "Tons?", webhook };
      const headers = { "idempotency-key": "q1" };
      const again = () => running.send("POST", CHAT, { body, headers });
      const [first, ...others] = await Promise.all([again(), again(), again()]);
      expect(first.status).toBe(202);
      for (const other of others) expect(other).toMatchObject({ status: 202, text: first.text });
      await vi.waitFor(() => expect(messagesTo("/once")).toHaveLength(1), WAIT);
      // Answered by now: the note outlives the question.
      await vi.waitFor(
        async () =>
          expect(await running.store.queue.figures("chat", undefined)).toMatchObject({ waiting: 0 }),
        WAIT,
      );
      expect(await again()).toMatchObject({ status: 202, text: first.text });
      expect(await running.store.queue.figures("chat", undefined)).toMatchObject({ waiting: 0 });

      expect(await send("Something else?")).toMatchObject({
        status: 409,
        json: { error: { code: "idempotency_conflict" } },
      });
      // Only accepted requests are recorded.
      expect((await send("", "q2")).status).toBe(400);
      expect((await send("Something else?", "q2")).status).toBe(202);
    } finally {
      await running.close();
    }
  });

  it("an answer that is not accepted for a day is given up, and counted as failed", async () => {
    let nowMs = Date.now();
    const running = await openAsking(undefined, {}, { nowMs: () => nowMs });
    try {
      receiver.answer = () => ({ status: 503 });
      const webhook = { url: `${receiver.url}/dead`, secret: newSecret() };
      const { message_id } = (await ask(running, { user: "Hello", webhook })).json;
      await vi.waitFor(async () => {
        expect(messagesTo("/dead")).toHaveLength(1);
        expect((await queuesOf(running)).webhooks.waiting).toBe(1);
      }, WAIT);
      await vi.waitFor(async () => {
        nowMs += 7 * 60 * 60 * 1000;
        // Any write wakes the delivery runner.
        await remember(running, "Something else.");
        const { webhooks } = await queuesOf(running);
        expect(webhooks).toMatchObject({ waiting: 0, failed: 1 });
      }, WAIT);
      const attempts = messagesTo("/dead");
      expect(attempts).toHaveLength(12);
      expect(new Set(attempts.map(({ id }) => id))).toEqual(new Set([`msg_${message_id}`]));
    } finally {
      await running.close();
    }
  });

  it("retries after temporary failures, and delivers permanent ones with the message of a direct answer", async () => {
    const failing = (code: string, message: string) => new KbsyncError(message, { code });
    // Each fails this often, as the store or an extractor would.
    const trouble = new Map<string, { left: number; readonly error: Error }>([
      ["busy", { left: 4, error: failing("store_busy", "the store at /secret/place is busy") }],
      ["unable", { left: 2, error: failing("extraction_failed", "no process could be had") }],
      ["never", { left: 3, error: failing("extraction_failed", "no process could be had") }],
      ["broken", { left: 1, error: Object.assign(new Error("/secret/place is broken"), { code: "EIO" }) }],
    ]);
    const wrapStore = (store: Store): Store =>
      withMethods(store, {
        records: {
          thread: async (query) => {
            const met = trouble.get(query.threadId);
            if (met === undefined || met.left === 0) return store.records.thread(query);
            met.left -= 1;
            throw met.error;
          },
        },
      });
    const running = await openAsking(undefined, {}, { wrapStore });
    try {
      const send = (path: string, body: object) =>
        ask(running, { user: "Hello", webhook: { url: receiver.url + path }, ...body });
      for (const thread_id of trouble.keys()) await send(`/trouble/${thread_id}`, { thread_id });
      const long = { user: "{{a}}".repeat(11), variables: { a: "a".repeat(20_000) } };
      await send("/trouble/long", long);
      const reported = (name: string) => messagesTo(`/trouble/${name}`).map(({ json }) => json);
      const names = [...trouble.keys(), "long"];
      await vi.waitFor(
        () => expect(names.map((name) => reported(name).length)).toEqual(names.map(() => 1)),
        WAIT,
      );
      expect(reported("busy")).toMatchObject([{ success: true }]);
      expect(reported("unable")).toMatchObject([{ success: true }]);
      expect(reported("never")).toMatchObject([{ success: false, error: { code: "extraction_failed" } }]);
      expect(reported("long")).toMatchObject([
        { error: { code: "text_too_large", field: "variables", hint: expect.any(String) } },
      ]);
      expect(reported("broken")).toMatchObject([{ error: { code: "internal" } }]);
      expect(JSON.stringify(reported("broken"))).not.toMatch(/secret|EIO/);
    } finally {
      await running.close();
    }
  });

  it("delivers no answer to a private address behind a public name", async () => {
    // The name seems public until it is dialled.
    const running = await openAsking(
      undefined,
      {},
      {
        webhookAllow: [],
        resolveHost: (_host, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]),
      },
    );
    try {
      const { port } = new URL(receiver.url);
      const seen = receiver.messages.length;
      const webhook = { url: `http://receiver.example:${port}/inside` };
      expect((await ask(running, { user: "Hello", webhook })).status).toBe(202);
      await vi.waitFor(() => expect(running.log()).toContain("a webhook endpoint fails"), WAIT);
      expect(running.log()).toMatch(/not a public/);
      expect(receiver.messages.length).toBe(seen);
    } finally {
      await running.close();
    }
  });

  it("delays an answer by webhook while too many questions wait, and refuses direct ones", async () => {
    let postponed = 0;
    const wrapStore = (store: Store): Store =>
      withMethods(store, {
        queue: {
          postpone: (...given) => store.queue.postpone(...given).finally(() => (postponed += 1)),
        },
      });
    const running = await openAsking(endpoint, {}, { wrapStore });
    try {
      const held = Promise.withResolvers<Behaviour>();
      endpoint.behave = () => held.promise;
      // 16 run at once and 96 of one account wait, so the question with a webhook is retried.
      const asked = Array.from({ length: 16 + 96 }, () => ask(running, { user: "Hello" }));
      await vi.waitFor(async () => {
        const over = await ask(running, { user: "One more" });
        expect(over).toMatchObject({ status: 503, json: { error: { code: "overloaded" } } });
      }, WAIT);
      const webhook = { url: `${receiver.url}/patient` };
      expect((await ask(running, { user: "Hello", webhook })).status).toBe(202);
      await vi.waitFor(() => expect(postponed).toBeGreaterThan(0), WAIT);
      held.resolve({ kind: "answer", text: "Now." });
      expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
      await vi.waitFor(() => expect(messagesTo("/patient")).toHaveLength(1), WAIT);
      expect(messagesTo("/patient")[0]?.json).toMatchObject({ success: true });
    } finally {
      await running.close();
    }
  });
});
