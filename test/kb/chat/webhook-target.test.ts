import { describe, expect, it } from "vitest";
import { webhookTarget } from "../../../src/kb/chat/webhook-target.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const URL_GIVEN = "https://hooks.example/in";
type Request = Parameters<typeof webhookTarget>[0];

const target = (request: Request) => webhookTarget(request, (host) => host !== "private.example");
const own = (change: object = {}): Request => ({ webhook: { url: URL_GIVEN, ...change } });
const original = (cred: object | undefined, type = "webhook"): Request =>
  ({ settings: { response_format: { type, ...(cred && { cred }) } } }) as Request; // as the wire schema lets it through

describe("where an answer is delivered", () => {
  it("an answer without a webhook is in the response", () => {
    expect(target({})).toBeUndefined();
    expect(target(original(undefined, "default"))).toBeUndefined();
    expect(target({ ...original(undefined, "default"), ...own() })).toMatchObject({ url: URL_GIVEN });
  });

  it("a webhook is an address of the request, with headers in lower case, signed if there is a secret", () => {
    const headers = { "X-Own": "é", Authorization: "Bearer x" };
    expect(target(own({ headers, secret: SECRET }))).toEqual({
      url: URL_GIVEN,
      secret: SECRET,
      headers: { "x-own": "é", authorization: "Bearer x" },
    });
    expect(target(own())).toEqual({ url: URL_GIVEN, headers: {} });
    expect(target(original({ url: URL_GIVEN, headers }))).toEqual({
      url: URL_GIVEN,
      headers: { "x-own": "é", authorization: "Bearer x" },
    });
  });

  it.each<[name: string, request: Request, field: string, message: RegExp]>([
    [
      "another type",
      original(undefined, "mail"),
      "settings.response_format.type",
      /expected webhook or default$/,
    ],
    ["both forms", { ...own(), ...original({ url: URL_GIVEN }) }, "webhook", /got both$/],
    [
      "no credentials",
      original(undefined),
      "settings.response_format.cred",
      /expected an object, got nothing$/,
    ],
    [
      "no address",
      own({ url: "x" }),
      "webhook.url",
      /^webhook\.url: expected an http or https address, got "x"$/,
    ],
    [
      "a private address",
      own({ url: "https://private.example/" }),
      "webhook.url",
      /expected a public address/,
    ],
    [
      "a private address in the other form",
      original({ url: "https://private.example/" }),
      "settings.response_format.cred.url",
      /public/,
    ],
    ["a short secret", own({ secret: "whsec_AA" }), "webhook.secret", /24 to 64 bytes/],
    ["a name that is none", own({ headers: { "a b": "x" } }), "webhook.headers", /valid names and values/],
    [
      "a value with a line break",
      own({ headers: { a: "x\ny" } }),
      "webhook.headers",
      /valid names and values/,
    ],
    [
      "a header of the service",
      own({ headers: { "Webhook-Id": "x" } }),
      "webhook.headers",
      /webhook-id is set by the service$/,
    ],
    [
      "a header of the connection",
      original({ url: URL_GIVEN, headers: { HOST: "x" } }),
      "settings.response_format.cred.headers",
      /host is set/,
    ],
  ])("a webhook is refused with %s", (_name, request, field, message) => {
    expect(() => target(request)).toThrow(
      expect.objectContaining({
        refusal: "invalid_field",
        field,
        message: expect.stringMatching(message),
      }),
    );
  });
});
