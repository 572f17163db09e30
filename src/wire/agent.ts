import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Tier, WireInteger } from "./primitives.ts";
import { OWNER_CHARS_MAX } from "./constants.ts";
import { TOP_K_DEFAULT } from "./search.ts";

/** Id of the agent that always exists. */
export const DEFAULT_AGENT_ID = "default";
/** Longest id of an agent, in requests too. */
export const AGENT_ID_CHARS_MAX = 64;
/** Longest system prompt in characters: some 8000 tokens, the whole window of a small model. */
export const PROMPT_CHARS_MAX = 32_000;
/** Parts of the knowledge base that an agent reads; each costs one search per question. */
const PARTS_MAX = 8;
/** Passages per part: more than a window holds and an answer can use. */
const PASSAGES_MAX = 50;

const name = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text.trim() !== "", { message: "expected a text that is not blank" });
const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
  message: "expected 1 to 64 letters, digits, - and _, the first a letter or digit",
});
const model = z.string().min(1).max(200);

/** A part of the knowledge base that an agent reads. */
export const KnowledgePart = z.object({
  tier: Tier.default("fastest").describe("The collection, by its retrieval tier."),
  /** Default: the account's own id. */
  owner: z.string().min(1).max(OWNER_CHARS_MAX).optional().describe("Owner of the resources that are read."),
  top_k: WireInteger.pipe(z.int().min(1).max(PASSAGES_MAX))
    .default(TOP_K_DEFAULT)
    .describe("Most passages taken from this part for one question."),
  score: z.number().min(0).max(1).optional().describe("Only passages with this score or more."),
});
export type KnowledgePart = z.infer<typeof KnowledgePart>;

/** Fields of an agent. */
const fields = {
  name: name.describe("For people."),
  systemPrompt: z
    .string()
    .max(PROMPT_CHARS_MAX)
    .describe("First instruction to the model; {{name}} is replaced by the request's variable of that name."),
  model: model.describe(
    "A model at the endpoint of kb.languageModel, or builtin/ocr. Default: the model of kb.languageModel.",
  ),
  fallbackModel: model.describe("Used when the first fails: a model at the same endpoint, or builtin/ocr."),
  temperature: z.number().min(0).max(2).describe("Default: the model's own."),
  knowledge: z
    .array(KnowledgePart)
    .max(PARTS_MAX)
    .describe("Parts of the knowledge base that it reads. Default of a configured agent: none."),
};

/** An agent of the configuration, available to every account. */
export const AgentConfig = z.strictObject({
  id: id.describe("Its agent_id in requests."),
  name: fields.name.optional(),
  systemPrompt: fields.systemPrompt.default(""),
  model: fields.model.optional(),
  fallbackModel: fields.fallbackModel.optional(),
  temperature: fields.temperature.optional(),
  knowledge: z
    .array(KnowledgePart.strict())
    .max(PARTS_MAX)
    .optional()
    .describe(
      "Parts of the knowledge base that it reads. Default: none; all configured sources for the agent `default`.",
    ),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** An agent in an answer. */
export const AgentRecord = z
  .object({
    _id: z.string(),
    name: z.string(),
    systemPrompt: z.string(),
    model: z.string().nullable(),
    fallbackModel: z.string().nullable(),
    temperature: z.number().nullable(),
    knowledge: z.array(
      z.object({
        tier: Tier,
        owner: z.string().nullable(),
        top_k: z.int(),
        score: z.number().nullable(),
      }),
    ),
  })
  .meta({ id: "Agent" });

export type AgentRecord = z.infer<typeof AgentRecord>;

export const AgentsAnswer = answerOf(z.object({ agents: z.array(AgentRecord) })).meta({
  id: "AgentsAnswer",
});
