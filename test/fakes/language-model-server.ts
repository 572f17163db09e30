import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { z } from "zod";

const Request = z.strictObject({
  model: z.literal("divider-1"),
  messages: z
    .array(z.strictObject({ role: z.enum(["system", "user", "assistant"]), content: z.string().min(1) }))
    .min(2),
  temperature: z.literal(0).optional(),
  seed: z.int().optional(),
});

/** A request as it came, checked. */
export type Asked = z.infer<typeof Request>;

/** What the server does in place of dividing. */
export type Script =
  | { readonly says: string; readonly finish?: string }
  | {
      readonly status: number;
      readonly error?: string;
      readonly retryAfter?: string;
      readonly location?: string;
    }
  | { readonly body: string }
  | { readonly hangs: true };

/** A small honest OpenAI-compatible server whose model begins a passage at each piece that begins with `Chapter`. */
export interface LanguageModelServer {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Every valid request so far. */
  readonly asked: readonly Asked[];
  /** Answers the next requests so, each once. */
  next(...scripts: readonly Script[]): void;
  close(): Promise<void>;
}

/** Starts it on a free port. It refuses what a real one would: another path, key, model or shape. */
export async function startLanguageModelServer(): Promise<LanguageModelServer> {
  const apiKey = "sk-test-0123456789";
  const asked: Asked[] = [];
  const scripts: Script[] = [];
  const server = createServer((request, response) => void answer(request, response));

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const refuse = (status: number, message: string): unknown =>
      response.writeHead(status).end(JSON.stringify({ error: { message } }));
    if (request.method !== "POST" || request.url !== "/v1/chat/completions")
      return void refuse(404, "no such path");
    if (request.headers.authorization !== `Bearer ${apiKey}`) return void refuse(401, "wrong key");
    if (request.headers["content-type"] !== "application/json") return void refuse(415, "expected JSON");
    const parsed = Request.safeParse(JSON.parse(body));
    if (!parsed.success) return void refuse(400, parsed.error.message);
    asked.push(parsed.data);
    const script = scripts.shift() ?? { says: divided(parsed.data) };
    if ("hangs" in script) return;
    if ("body" in script) return void response.end(script.body);
    if ("status" in script) {
      // A second try is worth nothing to a test that waits for it.
      if (script.retryAfter === undefined) response.setHeader("retry-after-ms", "1");
      else response.setHeader("retry-after", script.retryAfter);
      if (script.location !== undefined) response.setHeader("location", script.location);
      return void refuse(script.status, script.error ?? "scripted");
    }
    const message = { role: "assistant", content: script.says };
    response.end(
      JSON.stringify({ choices: [{ index: 0, message, finish_reason: script.finish ?? "stop" }] }),
    );
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server has one
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    apiKey,
    asked,
    next: (...more) => {
      scripts.push(...more);
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Reads the pieces of the question and divides before each chapter. */
function divided({ messages }: Asked): string {
  const question = messages.find(({ role }) => role === "user")?.content ?? "";
  const pieces = [...question.matchAll(/<piece number="(\d+)">\n([^]*?)\n<\/piece>/g)];
  const splitAfter = pieces
    .slice(1)
    .filter(([, , piece = ""]) => piece.startsWith("Chapter"))
    .map(([, number]) => Number(number) - 1);
  return JSON.stringify({ split_after: splitAfter });
}
