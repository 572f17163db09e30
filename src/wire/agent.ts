import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Tier, Time, WireInteger } from "./primitives.ts";
import { OWNER_CHARS_MAX } from "./resource.ts";
import { TOP_K_DEFAULT } from "./search.ts";

/** The agent that is always there. */
export const DEFAULT_AGENT_ID = "default";
/** Longest id of an agent, in a request too. */
export const AGENT_ID_CHARS_MAX = 64;
/** Longest system prompt in characters: some 8000 tokens, as much as a small model's whole window. */
export const PROMPT_CHARS_MAX = 32_000;
/** Places an agent reads: each is a search of its own at every question. */
const PLACES_MAX = 8;
/** Passages taken from one place: more than a window holds, and than an answer can use. */
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
export const KnowledgePlace = z.object({
  tier: Tier.default("fastest").describe("The collection, by its retrieval tier."),
  /** Default: the account's own id. */
  owner: z.string().min(1).max(OWNER_CHARS_MAX).optional().describe("Whose resources are read there."),
  top_k: WireInteger.pipe(z.int().min(1).max(PASSAGES_MAX))
    .default(TOP_K_DEFAULT)
    .describe("Most passages taken from there for one question."),
  score: z.number().min(0).max(1).optional().describe("Only passages with this score or more."),
});
export type KnowledgePlace = z.infer<typeof KnowledgePlace>;

/** What makes an agent, in the configuration and by API alike. */
const fields = {
  name: name.describe("For people."),
  systemPrompt: z
    .string()
    .max(PROMPT_CHARS_MAX)
    .describe("What the model is told before all else; {{name}} is filled in from the request's variables."),
  model: model.describe("Model at kb.languageModel's endpoint, or builtin/ocr. Default: that one's model."),
  fallbackModel: model.describe("Asked when the first fails: a model at the same endpoint, or builtin/ocr."),
  temperature: z.number().min(0).max(2).describe("Default: the model's own."),
  knowledge: z
    .array(KnowledgePlace)
    .max(PLACES_MAX)
    .describe("What it reads. Default of a configured agent: nothing."),
};

/** Body of `POST /v1/agents`. */
export const AgentBody = z
  .object({
    /** Default: one is made. */
    id: id.optional(),
    name: fields.name,
    systemPrompt: fields.systemPrompt.default(""),
    model: fields.model.nullish(),
    fallbackModel: fields.fallbackModel.nullish(),
    temperature: fields.temperature.nullish(),
    knowledge: fields.knowledge.default([]),
  })
  .meta({ id: "AgentBody" });
export type AgentBody = z.infer<typeof AgentBody>;

/** Body of `PUT /v1/agents/<id>`: any subset; null takes a field back to its default. */
export const AgentChangeBody = z
  .object({
    name: fields.name.optional(),
    systemPrompt: fields.systemPrompt.optional(),
    model: fields.model.nullish(),
    fallbackModel: fields.fallbackModel.nullish(),
    temperature: fields.temperature.nullish(),
    knowledge: fields.knowledge.optional(),
  })
  .meta({ id: "AgentChangeBody" });
export type AgentChangeBody = z.infer<typeof AgentChangeBody>;

/** An agent of the configuration: every account has it. */
export const AgentConfig = z.strictObject({
  id: id.describe("What requests name it by (agent_id)."),
  name: fields.name.optional(),
  systemPrompt: fields.systemPrompt.default(""),
  model: fields.model.optional(),
  fallbackModel: fields.fallbackModel.optional(),
  temperature: fields.temperature.optional(),
  knowledge: z
    .array(KnowledgePlace.strict())
    .max(PLACES_MAX)
    .optional()
    .describe("What it reads. Default: nothing; of the agent `default`, all configured sources."),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** An agent as the service shows it. `origin` tells whether the API may change it. */
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
    origin: z.enum(["built-in", "configuration", "api"]),
    createdAt: Time.nullable(),
    updatedAt: Time.nullable(),
  })
  .meta({ id: "Agent" });
export type AgentRecord = z.infer<typeof AgentRecord>;

export const AgentAnswer = answerOf(AgentRecord).meta({ id: "AgentAnswer" });
export const AgentsAnswer = answerOf(z.object({ agents: z.array(AgentRecord) })).meta({
  id: "AgentsAnswer",
});
