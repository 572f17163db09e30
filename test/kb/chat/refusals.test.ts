import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import type { Running } from "../service/running.ts";
import { ask, openAsking } from "./asking.ts";

let endpoint: ModelEndpoint;
let running: Running;
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  running = await openAsking(endpoint);
});
afterAll(async () => {
  await running.close();
  await endpoint.close();
});

it("a refusal names the value and the accepted ones as they are sent", async () => {
  const messageOf = async (change: object): Promise<string> => {
    return (await ask(running, { user: "Hello?", ...change })).json.message;
  };
  expect(await messageOf({ user_urls: [{ type: "audio", url: "http://a.b/" }] })).toBe(
    'user_urls[0].type: expected "image", got "audio"',
  );
  expect(await messageOf({ response_type: "xml" })).toBe(
    'response_type: expected "text" or "json", got "xml"',
  );
});

describe("a question is refused", () => {
  it.each<[string, object, number, string, string | undefined]>([
    ["without agent_id", { agent_id: undefined }, 400, "invalid_field", "agent_id"],
    ["with an agent_id that is no text", { agent_id: 5 }, 400, "invalid_field", "agent_id"],
    ["with an agent_id of 65 characters", { agent_id: "a".repeat(65) }, 400, "invalid_field", "agent_id"],
    ["of an agent that does not exist", { agent_id: "nobody" }, 404, "agent_not_found", "agent_id"],
    ["without user and images", { user: undefined }, 400, "invalid_field", "user"],
    ["with a blank user", { user: " \n" }, 400, "invalid_field", "user"],
    ["with a user that is no text", { user: ["Hello"] }, 400, "invalid_field", "user"],
    ["with a user of 200,001 characters", { user: "a".repeat(200_001) }, 400, "invalid_field", "user"],
    ["with an empty thread_id", { thread_id: "" }, 400, "invalid_field", "thread_id"],
    ["with a thread_id of 257 characters", { thread_id: "t".repeat(257) }, 400, "invalid_field", "thread_id"],
    ["with an unknown response_type", { response_type: "xml" }, 400, "invalid_field", "response_type"],
    ["with variables that are a list", { variables: ["a"] }, 400, "invalid_field", "variables"],
    ["with a variable that is an object", { variables: { a: {} } }, 400, "invalid_field", "variables.a"],
    [
      "with a variable of 20,001 characters",
      { variables: { a: "a".repeat(20_001) } },
      400,
      "invalid_field",
      "variables.a",
    ],
    [
      "with 201 variables",
      { variables: Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`v${at}`, 1])) },
      400,
      "invalid_field",
      "variables",
    ],
    [
      "with variables that make the question too long",
      { user: "{{a}}".repeat(11), variables: { a: "a".repeat(20_000) } },
      413,
      "text_too_large",
      "variables",
    ],
    ["with user_urls that are no list", { user_urls: "x" }, 400, "invalid_field", "user_urls"],
    [
      "with an item of another type",
      { user_urls: [{ type: "audio", url: "http://a.b/" }] },
      400,
      "invalid_field",
      "user_urls[0].type",
    ],
    [
      "with an item without url",
      { user_urls: [{ type: "image" }] },
      400,
      "invalid_field",
      "user_urls[0].url",
    ],
    [
      "with 21 images",
      { user_urls: Array.from({ length: 21 }, () => ({ type: "image", url: "http://a.b/" })) },
      400,
      "invalid_field",
      "user_urls",
    ],
    ["with stream that is a word", { stream: "yes" }, 400, "invalid_field", "stream"],
    [
      "with a webhook without a valid address",
      { webhook: { url: "nowhere" } },
      400,
      "invalid_field",
      "webhook.url",
    ],
    [
      "with a webhook at a private address",
      { webhook: { url: "http://10.0.0.1/" } },
      400,
      "invalid_field",
      "webhook.url",
    ],
    [
      "with an invalid secret",
      { webhook: { url: "https://a.example/", secret: "s" } },
      400,
      "invalid_field",
      "webhook.secret",
    ],
    [
      "with a reserved header",
      { webhook: { url: "https://a.example/", headers: { "Webhook-Id": "1" } } },
      400,
      "invalid_field",
      "webhook.headers",
    ],
    [
      "with a header of two lines",
      { webhook: { url: "https://a.example/", headers: { a: "b\r\nc: d" } } },
      400,
      "invalid_field",
      "webhook.headers",
    ],
    [
      "with a webhook and stream",
      { webhook: { url: "https://a.example/" }, stream: true },
      400,
      "invalid_field",
      "stream",
    ],
    [
      "with a response_format of another type",
      { settings: { response_format: { type: "fax" } } },
      400,
      "invalid_field",
      "settings.response_format.type",
    ],
    [
      "with a response_format without an address",
      { settings: { response_format: { type: "webhook" } } },
      400,
      "invalid_field",
      "settings.response_format.cred",
    ],
  ])("refuses a question %s", async (_name, change, status, code, field) => {
    const asked = endpoint.requests.length;
    const answer = await ask(running, { user: "Hello", ...change });
    expect(answer).toMatchObject({ status, json: { success: false, error: { code } } });
    expect(answer.json.error.field).toBe(field);
    expect(endpoint.requests.length).toBe(asked);
  });

  it("says how to leave out the secret of a webhook, which leaves the delivery unsigned", async () => {
    const answer = await ask(running, { user: "Hello", webhook: { url: "https://a.example/", secret: "s" } });
    expect(answer.json.error.hint).toBe("Leave it out to have the delivery sent unsigned.");
  });
});
