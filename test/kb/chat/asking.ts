import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import type { ChatOptions } from "../../../src/kb/answering.ts";
import { ENDPOINT_KEY, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running, RunningOptions } from "../service/running.ts";

export const CHAT = "/api/v2/model/chat/completion";
export const OWNER = "harbour";
/** The owner's part of the knowledge base. */
export const KNOWLEDGE = [{ tier: "fastest" as const, owner: OWNER }];

/** Opens a service whose agent `default` uses the endpoint, if any, and reads the owner's documents. */
export async function openAsking(
  endpoint: ModelEndpoint | undefined,
  chat: Partial<ChatOptions> = {},
  options: RunningOptions = {},
): Promise<Running> {
  const languageModel = endpoint && { baseUrl: endpoint.url, model: "seeing", apiKey: () => ENDPOINT_KEY };
  return openRunning({
    fetchAllow: ["127.0.0.1"],
    webhookAllow: ["127.0.0.1"],
    ...options,
    ...(languageModel && { languageModel }),
    chat: { defaultKnowledge: () => KNOWLEDGE, timeoutMs: 20_000, ...chat },
  });
}

/** Creates a document of the owner. */
export async function remember(running: Running, content: string, title = "Harbour"): Promise<string> {
  const body = createBody({ content, title, owner_id: OWNER });
  return (await running.send("POST", "/api/rag/resource", { body })).json.data._id;
}

/** Asks the agent `default`. */
export function ask(running: Running, body: object): Promise<Answered> {
  return running.send("POST", CHAT, { body: { agent_id: "default", ...body } });
}

/** Parses the events of a streamed answer. */
export function eventsOf(text: string): { event: string; data: Record<string, unknown> }[] {
  return text
    .split("\n\n")
    .filter((block) => block.startsWith("event: "))
    .map((block) => {
      const [, event = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      return { event, data: JSON.parse(data) as Record<string, unknown> };
    });
}

/** Starts a request that the caller may abort. */
export function begin(running: Running, body: object, signal: AbortSignal): Promise<unknown> {
  return request(running.url + CHAT, {
    method: "POST",
    headers: { pauthkey: running.key, "content-type": "application/json" },
    body: JSON.stringify({ agent_id: "default", ...body }),
    signal,
  }).then((answer) => answer.body.text());
}

/** Counts stored files, and files in `incoming/`. */
export async function filesOf(running: Running): Promise<{ stored: number; incoming: number }> {
  const uploads = join(running.stateDir, "uploads");
  const [stored, incoming] = await Promise.all([readdir(uploads), readdir(join(uploads, "incoming"))]);
  return { stored: stored.length - 1, incoming: incoming.length };
}
