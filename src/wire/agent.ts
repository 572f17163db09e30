import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Tier } from "./primitives.ts";
import { OWNER_CHARS_MAX } from "./constants.ts";

/** Id of the agent that always exists. */
export const DEFAULT_AGENT_ID = "default";
/** Longest id of an agent, in requests too. */
export const AGENT_ID_CHARS_MAX = 64;
/** Longest system prompt in characters: some 8000 tokens, the whole window of a small model. */
export const PROMPT_CHARS_MAX = 32_000;
/** Parts of the knowledge base that an agent reads; each costs one search per question. */
const PARTS_MAX = 8;

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
  message: "expected 1 to 64 letters, digits, - and _, the first a letter or digit",
});
const model = z.string().min(1).max(200);

/** A part of the knowledge base that an agent reads. */
export interface KnowledgePart {
  readonly tier: Tier;
  /** Default: the account's own id. */
  readonly owner?: string | undefined;
}

/** A part as text: an owner, or a tier and an owner. */
const KnowledgeText = z
  .string()
  .min(1)
  .transform((text): KnowledgePart => {
    const slash = text.indexOf("/");
    const tier = Tier.safeParse(text.slice(0, slash));
    return slash > 0 && tier.success
      ? { tier: tier.data, owner: text.slice(slash + 1) }
      : { tier: "fastest", owner: text };
  })
  .refine(({ owner = "" }) => owner.length >= 1 && owner.length <= OWNER_CHARS_MAX, {
    error: `expected an owner of 1 to ${OWNER_CHARS_MAX} characters`,
  });

/** An agent of the configuration, available to every account. */
export const AgentConfig = z.strictObject({
  id: id.describe("Its agent_id in requests."),
  systemPrompt: z
    .string()
    .max(PROMPT_CHARS_MAX)
    .default("")
    .describe("First instruction to the model; {{name}} is replaced by the request's variable of that name."),
  model: model
    .optional()
    .describe(
      "A model at the endpoint of kb.languageModel, or builtin/ocr. Default: the model of kb.languageModel.",
    ),
  fallbackModel: model
    .optional()
    .describe("Used when the first fails: a model at the same endpoint, or builtin/ocr. Default: none."),
  knowledge: z
    .array(KnowledgeText)
    .max(PARTS_MAX)
    .optional()
    .describe(
      "Owners whose resources it reads: `handbook` in the tier `fastest`, `moderate/handbook` in another. Default: none; all configured sources for the agent `default`.",
    ),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** An agent in an answer. */
export const AgentRecord = z
  .object({
    _id: z.string(),
    systemPrompt: z.string(),
    model: z.string().nullable(),
    fallbackModel: z.string().nullable(),
    knowledge: z.array(z.object({ tier: Tier, owner: z.string().nullable() })),
  })
  .meta({ id: "Agent" });

export type AgentRecord = z.infer<typeof AgentRecord>;

export const AgentsAnswer = answerOf(z.object({ agents: z.array(AgentRecord) })).meta({
  id: "AgentsAnswer",
});
