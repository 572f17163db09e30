import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { LanguageState } from "../../ingest/language-service.ts";
import type { ModelState } from "../../ingest/model.ts";
import type { RerankerState } from "../../search/reranker.ts";
import type { ServiceState } from "../limits/admission.ts";
import { Tier } from "../../../wire/primitives.ts";
import { routeConfig, sendJson } from "../operation/operation.ts";
import type { DeepReadonly } from "../operation/operation.ts";

/** Answered without a key, in every state. */
export const HEALTH_PATH = "/v1/health";

const Answer = z
  .object({
    success: z.literal(true),
    status: z.enum(["starting", "ready", "draining", "damaged", "failing"]),
    version: z.string(),
    embedder: z.object({
      state: z.enum(["off", "idle", "loading", "ready", "failing", "unavailable"]),
      message: z.string(),
      hint: z.string().optional(),
    }),
    reranker: z.object({ state: z.enum(["off", "idle", "ready", "failing"]), message: z.string() }),
    languageModel: z.object({ state: z.enum(["off", "ready", "failing"]), message: z.string() }),
    isBackfilling: z
      .boolean()
      .describe(
        "Whether documents that were stored without vectors are being embedded; until then, words alone find them.",
      ),
    tiers: z.record(Tier, z.string()).describe("What each tier does at present, as a sentence."),
  })
  .meta({ id: "HealthAnswer" });

/** The public state of the service. */
export interface Health {
  /**
   * `damaged`: an operation found the store file damaged; requests that the damage does not affect are still answered. Never said of a
   * database that processes share.
   * `failing`: a thread of the store ended and is being restarted, or the database does not answer.
   */
  readonly status: ServiceState | "damaged" | "failing";
  readonly version: string;
  /** The state of the embedding model, with a message. */
  readonly embedder: ModelState;
  /** The state of the reranking model, with a message. */
  readonly reranker: RerankerState;
  /** The state of the language model, with a message. */
  readonly languageModel: LanguageState;
  /** Whether chunks without vectors are being embedded. */
  readonly isBackfilling: boolean;
  /** The present abilities of each tier of `collection_details`. */
  readonly tiers: Readonly<Record<Tier, string>>;
}

/** `GET /v1/health`, an addition: whether the service runs, and which tiers work in full. */
export function addHealthRoute(server: FastifyInstance, health: () => Health): void {
  const doc = {
    summary: "Whether the service runs, and which tiers work in full.",
    tag: "Service",
    answers: { 200: Answer },
  };
  server.get(HEALTH_PATH, { config: routeConfig("none", doc) }, async (_request, reply) => {
    const answer: DeepReadonly<z.infer<typeof Answer>> = { success: true, ...health() };
    return sendJson(reply, 200, JSON.stringify(answer));
  });
}
