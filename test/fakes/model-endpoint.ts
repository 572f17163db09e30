import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

// A small OpenAI-compatible endpoint on a socket of this machine. It takes what the real ones take, and refuses what they
// refuse, in their form; tests say what it answers, and how it fails.

const Text = z.strictObject({ type: z.literal("text"), text: z.string() });
const Picture = z.strictObject({
  type: z.literal("image_url"),
  image_url: z.strictObject({ url: z.string(), detail: z.enum(["auto", "low", "high"]).optional() }),
});
const Message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: z.string() }),
  z.strictObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Picture])).min(1)]),
  }),
  z.strictObject({ role: z.literal("assistant"), content: z.string() }),
]);
const Body = z.strictObject({
  model: z.string(),
  messages: z.array(Message).min(1),
  temperature: z.number().min(0).max(2).optional(),
  stream: z.boolean().optional(),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  response_format: z.strictObject({ type: z.enum(["text", "json_object"]) }).optional(),
});
export type EndpointRequest = z.infer<typeof Body>;

/** How the endpoint behaves towards one request. */
export type Behaviour =
  | { readonly kind: "answer"; readonly text: string; readonly finish?: string; readonly usage?: object }
  /** An error in the endpoint's form. */
  | {
      readonly kind: "fail";
      readonly status: number;
      readonly message?: string;
      readonly retryAfter?: string;
    }
  /** Nothing comes, at once or behind some pieces. */
  | { readonly kind: "stall"; readonly after?: readonly string[] }
  /** The connection breaks, at once or behind some pieces. */
  | { readonly kind: "break"; readonly after?: readonly string[] }
  /** What no endpoint should answer. */
  | { readonly kind: "raw"; readonly body: string; readonly type?: string };

export interface ModelEndpoint {
  /** As `baseUrl` of the configuration. */
  readonly url: string;
  /** Requests that were in order. */
  readonly requests: readonly EndpointRequest[];
  /** Requests aborted by their sender. */
  brokenOff(): number;
  /** What the next requests get; default an answer of one sentence. */
  behave: (request: EndpointRequest) => Behaviour | Promise<Behaviour>;
  close(): Promise<void>;
}

/** What it asks for as the bearer. */
export const ENDPOINT_KEY = "sk-test-1234";
/** Models that it has; `blind` takes no images. */
export const MODELS = ["seeing", "second", "blind"] as const;
const IMAGE_BYTES_MAX = 20 * 1024 * 1024;
const SIGNATURES: Readonly<Record<string, string>> = { "image/png": "89504e47", "image/jpeg": "ffd8ff" };

export async function openModelEndpoint(): Promise<ModelEndpoint> {
  const requests: EndpointRequest[] = [];
  let brokenOff = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const refusal = refusalOf(request, Buffer.concat(parts).toString("utf8"));
    if (typeof refusal === "object" && "status" in refusal) return fail(response, refusal);
    response.on("close", () => {
      if (!response.writableFinished) brokenOff += 1;
    });
    requests.push(refusal);
    act(response, refusal, await endpoint.behave(refusal));
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  const endpoint: ModelEndpoint = {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    brokenOff: () => brokenOff,
    behave: () => ({ kind: "answer", text: "The crane lifts forty tons. [1]" }),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return endpoint;
}

interface Refused {
  readonly status: number;
  /** Seconds, as its header says them. Default: a second try is worth nothing to a test that waits for it. */
  readonly retryAfter?: string;
  readonly message: string;
}

function refusalOf(request: IncomingMessage, text: string): Refused | EndpointRequest {
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
    return { status: 404, message: `Unknown request URL: ${request.method} ${request.url}` };
  }
  if (request.headers.authorization !== `Bearer ${ENDPOINT_KEY}`) {
    return { status: 401, message: "Incorrect API key provided." };
  }
  const parsed = Body.safeParse(JSON.parse(text));
  if (!parsed.success) return { status: 400, message: `Invalid body: ${parsed.error.message}` };
  const { model, messages, stream, stream_options: options } = parsed.data;
  if (!MODELS.some((known) => known === model)) {
    return { status: 404, message: `The model \`${model}\` does not exist` };
  }
  if (options !== undefined && stream !== true)
    return { status: 400, message: "stream_options without stream" };
  // As strict as the chat templates of small models: the system first, then user and assistant in turn.
  const turns = messages[0]?.role === "system" ? messages.slice(1) : messages;
  const inTurn = turns.every(({ role }, at) => role === (at % 2 === 0 ? "user" : "assistant"));
  if (!inTurn || turns.length % 2 === 0) return { status: 400, message: "Conversation roles must alternate" };
  for (const message of messages) {
    const problem = typeof message.content === "string" ? undefined : problemOf(message.content, model);
    if (problem !== undefined) return { status: 400, message: problem };
  }
  return parsed.data;
}

function problemOf(
  content: readonly (z.infer<typeof Text> | z.infer<typeof Picture>)[],
  model: string,
): string | undefined {
  for (const part of content) {
    if (part.type === "text") continue;
    if (model === "blind") return "This model does not support image input";
    const [, type = "", data = ""] = /^data:([^;]+);base64,(.*)$/s.exec(part.image_url.url) ?? [];
    const bytes = Buffer.from(data, "base64");
    if (data === "" || bytes.toString("base64") !== data) return "Invalid base64 image_url";
    if (bytes.length > IMAGE_BYTES_MAX) return "The image is larger than 20 MB";
    if (!bytes.toString("hex", 0, 4).startsWith(SIGNATURES[type] ?? "none"))
      return `Not an image of type ${type}`;
  }
  return undefined;
}

function act(response: ServerResponse, request: EndpointRequest, behaviour: Behaviour): void {
  switch (behaviour.kind) {
    case "fail":
      return fail(response, { message: "The server had an error", ...behaviour });
    case "raw":
      response.writeHead(200, { "content-type": behaviour.type ?? "application/json" }).end(behaviour.body);
      return;
    case "stall":
    case "break": {
      const { after = [] } = behaviour;
      if (after.length > 0) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const piece of after) response.write(chunk(request.model, { content: piece }, null));
      }
      if (behaviour.kind === "break") response.write("", () => response.destroy());
      return;
    }
    case "answer":
      return give(response, request, behaviour);
  }
}

function give(
  response: ServerResponse,
  { model, stream, stream_options: options }: EndpointRequest,
  {
    text,
    finish = "stop",
    usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  }: Extract<Behaviour, { kind: "answer" }>,
): void {
  if (stream !== true) {
    const message = { role: "assistant", content: text, refusal: null };
    const choices = [{ index: 0, message, finish_reason: finish, logprobs: null }];
    const body = {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: `${model}-2026`,
      choices,
      usage,
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk(model, { role: "assistant", content: "" }, null));
  for (const word of text.split(/(?<= )/)) response.write(chunk(model, { content: word }, null));
  response.write(chunk(model, {}, finish));
  if (options?.include_usage === true) response.write(event({ ...base(model), choices: [], usage }));
  response.end("data: [DONE]\n\n");
}

const base = (model: string) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: `${model}-2026`,
});

function chunk(model: string, delta: object, finish: string | null): string {
  return event({ ...base(model), choices: [{ index: 0, delta, finish_reason: finish }] });
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function fail(response: ServerResponse, { status, message, retryAfter }: Refused): void {
  const error = {
    message,
    type: status === 401 ? "authentication_error" : "invalid_request_error",
    code: null,
  };
  const wait = retryAfter === undefined ? { "retry-after-ms": "1" } : { "retry-after": retryAfter };
  response.writeHead(status, { "content-type": "application/json", ...wait });
  response.end(JSON.stringify({ error }));
}
