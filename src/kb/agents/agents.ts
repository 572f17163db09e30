import { DEFAULT_AGENT_ID } from "../../wire/agent.ts";
import type { AgentConfig, KnowledgePart } from "../../wire/agent.ts";
import { Refusal, shown } from "../resources/refusal.ts";

/** An agent, available to every account. */
export interface Agent {
  readonly id: string;
  readonly systemPrompt: string;
  /** Undefined: the configured model. */
  readonly model: string | undefined;
  readonly fallbackModel: string | undefined;
  readonly knowledge: readonly KnowledgePart[];
}

/** The agents of the configuration. */
export interface Agents {
  readonly configured: readonly AgentConfig[];
  /** Knowledge of `default` unless configured; called each time. */
  readonly defaultKnowledge: () => readonly KnowledgePart[];
}

/** System prompt of `default` unless configured. */
const DEFAULT_PROMPT =
  "You answer questions about the user's documents and images. Be brief and exact. Where the material does not hold the answer, say so.";

/** Returns an agent. Throws `agent_not_found`; `field` is the field of the body that names the agent, if any. */
export function readAgent(agents: Agents, id: string, field?: string): Agent {
  const agent = listAgents(agents).find((each) => each.id === id);
  if (agent !== undefined) return agent;
  throw new Refusal("agent_not_found", `There is no agent ${shown(id)}.`, {
    ...(field === undefined ? {} : { field }),
    hint: "GET /v1/agents lists the agents; `default` always exists.",
  });
}

/** Lists the agents in the order of the configuration. Always includes `default`, first unless configured. */
export function listAgents({ configured, defaultKnowledge }: Agents): readonly Agent[] {
  const hasDefault = configured.some(({ id }) => id === DEFAULT_AGENT_ID);
  const configs = hasDefault ? configured : [{ id: DEFAULT_AGENT_ID, systemPrompt: "" }, ...configured];
  return configs.map((config: AgentConfig) => {
    const isDefault = config.id === DEFAULT_AGENT_ID;
    return {
      id: config.id,
      systemPrompt: config.systemPrompt || (isDefault ? DEFAULT_PROMPT : ""),
      model: config.model,
      fallbackModel: config.fallbackModel,
      knowledge: config.knowledge ?? (isDefault ? defaultKnowledge() : []),
    };
  });
}
