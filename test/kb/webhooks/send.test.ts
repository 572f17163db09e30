import { MockAgent } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { sendDelivery, type Attempt } from "../../../src/kb/webhooks/send.ts";

const HOST = "https://hooks.example";
const NOW_MS = Date.parse("2026-01-01T00:00:00.000Z");

let dispatcher: MockAgent;
beforeEach(() => {
  dispatcher = new MockAgent();
  dispatcher.disableNetConnect();
});
afterEach(() => dispatcher.close());

const receiver = () => dispatcher.get(HOST).intercept({ path: "/hook", method: "POST" });
const send = (headers: Record<string, string> = {}): Promise<Attempt> =>
  sendDelivery(
    { dispatcher, agent: "kbsync/test", nowMs: () => NOW_MS },
    { eventId: "msg_1", body: '{"a":1}', target: { url: `${HOST}/hook`, headers } },
    new AbortController().signal,
  );

describe("sendDelivery", () => {
  it.each<[status: number, headers: Record<string, string>, attempt: Attempt]>([
    [200, {}, { kind: "arrived" }],
    [299, {}, { kind: "arrived" }],
    [300, {}, { kind: "failed", problem: "the receiver answered 300", retryAfterMs: undefined }],
    [410, {}, { kind: "gone", problem: "the receiver answered 410" }],
    [
      503,
      { "retry-after": "7" },
      { kind: "failed", problem: "the receiver answered 503", retryAfterMs: 7000 },
    ],
    [
      429,
      { "retry-after": new Date(NOW_MS + 9000).toUTCString() },
      { kind: "failed", problem: "the receiver answered 429", retryAfterMs: 9000 },
    ],
  ])("an answer %i with headers %j is %j", async (status, headers, attempt) => {
    receiver().reply(status, "a body", { headers });
    expect(await send()).toEqual(attempt);
  });

  it.each<[name: string, error: Error, problem: string]>([
    ["no answer in time", new DOMException("late", "TimeoutError"), "no answer within 15 s"],
    [
      "a refused connection",
      Object.assign(new Error("connect ECONNREFUSED 10.0.0.7:443"), { code: "ECONNREFUSED" }),
      "hooks.example refuses the connection",
    ],
    ["a refused address", new KbsyncError("x".repeat(300), { code: "address_refused" }), "x".repeat(200)],
  ])("reports %s in words of its own", async (_name, error, problem) => {
    receiver().replyWithError(error);
    expect(await send()).toEqual({ kind: "failed", problem, retryAfterMs: undefined });
  });

  it("headers given with the address replace none of the message's own", async () => {
    let sent: Record<string, string> = {};
    receiver().reply(({ headers }) => {
      sent = { ...(headers as Record<string, string>) }; // undici hands over what `request` was given
      return { statusCode: 204 };
    });
    await send({
      "x-own": "kept",
      "content-type": "text/plain",
      "user-agent": "other",
      "webhook-id": "msg_2",
    });
    expect(sent).toMatchObject({
      "x-own": "kept",
      "content-type": "application/json",
      "user-agent": "kbsync/test",
      "webhook-id": "msg_1",
      "webhook-timestamp": String(NOW_MS / 1000),
    });
  });
});
