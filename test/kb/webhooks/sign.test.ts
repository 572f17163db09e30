import { describe, expect, it } from "vitest";
import { nextWaitMs, retryAfterMs, TRIED_FOR_MS } from "../../../src/kb/webhooks/schedule.ts";
import { isSecret, newSecret, signedHeaders } from "../../../src/kb/webhooks/sign.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

describe("signedHeaders", () => {
  it("signs as the standard's own libraries do", () => {
    // The example that the standard's reference libraries test against.
    const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}' };
    const headers = signedHeaders(message, [{ secret: SECRET, untilMs: null }], 1_614_265_330_000);
    expect(headers).toEqual({
      "webhook-id": message.id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("signs with every secret in force, newest first, and with none past its time", () => {
    const secrets = [
      { secret: newSecret(), untilMs: null },
      { secret: newSecret(), untilMs: 2000 },
      { secret: newSecret(), untilMs: 1000 },
    ];
    const { "webhook-signature": signature = "" } = signedHeaders({ id: "m", body: "" }, secrets, 1500);
    expect(signature.split(" ")).toHaveLength(2);
    expect(signedHeaders({ id: "m", body: "" }, [], 0)).not.toHaveProperty("webhook-signature");
  });

  it.each([
    [newSecret(), true],
    [SECRET, true],
    ["whsec_", false],
    ["whsec_####", false],
    [`whsec_${Buffer.alloc(65).toString("base64")}`, false],
    [SECRET.slice(6), false],
  ])("%s can be a secret: %s", (text, can) => {
    expect(isSecret(text)).toBe(can);
  });
});

describe("the schedule", () => {
  it("waits ever longer, spreads, and makes its last attempt when the day is over", () => {
    const createdMs = 1_000_000;
    let nowMs = createdMs;
    const waits: number[] = [];
    for (let attempts = 1; ; attempts++) {
      const chance = (attempts * 0.37) % 1;
      const wait = nextWaitMs({ attempts, createdMs, nowMs, askedMs: undefined, chance });
      if (wait === undefined) break;
      waits.push(wait);
      nowMs += wait;
    }
    expect(nowMs).toBe(createdMs + TRIED_FOR_MS);
    expect(waits.length).toBeLessThan(15);
    expect(waits[0]).toBeLessThan(6000);
    for (const [at, wait] of waits.slice(0, 8).entries()) expect(waits[at + 1]).toBeGreaterThan(wait);
  });

  it("waits as long as the receiver asks for, within the day", () => {
    const asked = { attempts: 1, createdMs: 0, nowMs: 0, chance: 0.5 };
    expect(nextWaitMs({ ...asked, askedMs: 3_600_000 })).toBe(3_600_000);
    expect(nextWaitMs({ ...asked, askedMs: 1 })).toBe(5000);
    expect(nextWaitMs({ ...asked, askedMs: 10 * TRIED_FOR_MS })).toBe(TRIED_FOR_MS);
  });

  it("waits no longer for a clock that was set back since the message was written", () => {
    const asked = { attempts: 1, createdMs: 0, nowMs: -2 * TRIED_FOR_MS, chance: 0.5 };
    expect(nextWaitMs({ ...asked, askedMs: undefined })).toBe(5000);
    expect(nextWaitMs({ ...asked, askedMs: 10 * TRIED_FOR_MS })).toBe(TRIED_FOR_MS);
  });

  it.each([
    ["120", 120_000],
    ["Thu, 01 Jan 1970 00:00:10 GMT", 5000],
    ["Thu, 01 Jan 1970 00:00:01 GMT", 0],
    ["soon", undefined],
    [undefined, undefined],
  ])("reads Retry-After: %s", (header, wait) => {
    expect(retryAfterMs(header, 5000)).toBe(wait);
  });
});
