import { describe, expect, it } from "vitest";
import { nextWaitMs } from "../../../src/kb/webhooks/schedule.ts";
import { isSecret, newSecret, signedHeaders } from "../../../src/kb/webhooks/sign.ts";

const HOUR_MS = 60 * 60 * 1000;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

describe("signedHeaders", () => {
  it("signedHeaders signs as the standard's own libraries do", () => {
    // The example that the standard's reference libraries test against.
    const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}' };
    const headers = signedHeaders(message, SECRET, 1_614_265_330_000);
    expect(headers).toEqual({
      "webhook-id": message.id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("signedHeaders signs nothing without a secret", () => {
    expect(signedHeaders({ id: "m", body: "" }, undefined, 0)).not.toHaveProperty("webhook-signature");
  });

  it.each([
    [newSecret(), true],
    [SECRET, true],
    ["whsec_", false],
    ["whsec_####", false],
    [`whsec_${Buffer.alloc(65).toString("base64")}`, false],
    [SECRET.slice(6), false],
  ])("isSecret(%s) is %s", (text, isValid) => {
    expect(isSecret(text)).toBe(isValid);
  });
});

describe("the schedule", () => {
  it("delays grow with jitter to 24 hours in total", () => {
    const waitsAt = (chance: number): number[] => {
      const waits: number[] = [];
      for (;;) {
        const wait = nextWaitMs({ attempts: waits.length + 1, requestedMs: undefined, chance });
        if (wait === undefined) return waits;
        waits.push(wait);
      }
    };
    const waits = waitsAt(0.5);
    expect(waits.reduce((sum, wait) => sum + wait, 0)).toBe(24 * HOUR_MS);
    const minutes = waits.map((wait) => Math.round(wait / 6000) / 10);
    expect(minutes).toEqual([0.1, 0.5, 2, 10, 30, 60, 120, 240, 300, 300, 377.4]);
    expect(waitsAt(0)[0]).toBe(4500);
    expect(waitsAt(0.999)[0]).toBe(5499);
  });

  it("the wait follows Retry-After up to six hours", () => {
    const failed = { attempts: 1, chance: 0.5 };
    expect(nextWaitMs({ ...failed, requestedMs: HOUR_MS })).toBe(HOUR_MS);
    expect(nextWaitMs({ ...failed, requestedMs: 1 })).toBe(5000);
    expect(nextWaitMs({ ...failed, requestedMs: 100 * HOUR_MS })).toBe(6 * HOUR_MS);
  });
});
