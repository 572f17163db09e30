import { describe, expect, it } from "vitest";
import { isSecret, newSecret, signedHeaders } from "../../../src/kb/webhooks/sign.ts";

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
