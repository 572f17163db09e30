import { KbsyncError } from "../../lib/failure.ts";
import { newHexId } from "../../lib/ids.ts";
import type { Turns } from "../../lib/turns.ts";
import { DEFAULT_AGENT_ID } from "../../wire/agent.ts";
import type { AgentBody, AgentChangeBody, AgentConfig, KnowledgePlace } from "../../wire/agent.ts";
import { Refusal, shown } from "../resources/refusal.ts";
import type { AgentKey, ChatStore, StoredAgent } from "../store/chat.ts";

/** What makes an agent. */
export interface AgentFields {
  readonly name: string;
  readonly systemPrompt: string;
  /** Undefined: the configured one. */
  readonly model: string | undefined;
  readonly fallbackModel: string | undefined;
  readonly temperature: number | undefined;
  readonly knowledge: readonly KnowledgePlace[];
}

/** An agent of an account. */
export interface Agent extends AgentFields {
  readonly id: string;
  /** `api`: it has a row of the account's, and can be changed. */
  readonly origin: "built-in" | "configuration" | "api";
  readonly createdAt: string | undefined;
  readonly updatedAt: string | undefined;
}

/** What the operations on agents work with. */
export interface Agents {
  readonly store: Pick<ChatStore, "addAgent" | "changeAgent" | "removeAgent" | "agent" | "agents">;
  /** Every account has them. */
  readonly configured: readonly AgentConfig[];
  /** What `default` reads where nobody said otherwise; asked each time. */
  readonly defaultKnowledge: () => readonly KnowledgePlace[];
  readonly nowMs: () => number;
  /** A change reads the agent and writes it: each sees what those before it made. */
  readonly turns: Turns;
}

/** Agents an account may make. */
const AGENTS_MAX = 100;

/** What `default` is told where nobody said otherwise. */
const DEFAULT_PROMPT =
  "You answer questions about the user's documents and images. Be brief and exact. Where the material does not hold the answer, say so.";

/** Throws `agent_not_found`; `field` is that of the body which names the agent, if one does. */
export async function readAgent(agents: Agents, at: AgentKey, field?: string): Promise<Agent> {
  const agent = fixedAgent(agents, at.id) ?? stored(await agents.store.agent(at)) ?? standIn(agents, at.id);
  if (agent === undefined) throw noAgent(at.id, field);
  return agent;
}

/** Those of the configuration first, then the account's own by age. `default` is always among them. */
export async function listAgents(agents: Agents, accountId: string): Promise<readonly Agent[]> {
  const configured = agents.configured.map((config) => configuredAgent(agents, config));
  const own = (await agents.store.agents(accountId))
    .flatMap((row) => stored(row) ?? [])
    // The configuration came to have an agent of that id: it goes first.
    .filter(({ id }) => fixedAgent(agents, id) === undefined);
  const found = [...configured, ...own];
  const isThere = found.some(({ id }) => id === DEFAULT_AGENT_ID);
  return isThere ? found : [builtInAgent(agents), ...found];
}

/** Makes an agent. Throws `agent_exists` and `too_many_agents`. */
export async function createAgent(agents: Agents, accountId: string, body: AgentBody): Promise<Agent> {
  const id = body.id ?? newHexId(agents.nowMs());
  if (fixedAgent(agents, id) !== undefined || id === DEFAULT_AGENT_ID) throw agentExists(id);
  return insert(agents, { accountId, id }, fieldsOf(body));
}

/** Changes an agent; `default` gets a row of its own with its first change. Throws `agent_fixed`. */
export async function changeAgent(agents: Agents, at: AgentKey, body: AgentChangeBody): Promise<Agent> {
  if (Object.keys(body).length === 0) {
    throw new Refusal("invalid_body", "The body names nothing to change.");
  }
  return inTurn(agents, at, async () => {
    const before = await readAgent(agents, at);
    if (before.origin === "configuration") throw fixed(at.id);
    const fields = changedFields(before, body);
    if (before.origin === "built-in") return insert(agents, at, fields);
    const updatedAt = nowIso(agents);
    const isThere = await agents.store.changeAgent({ ...at, body: JSON.stringify(fields), updatedAt });
    if (!isThere) throw noAgent(at.id);
    return { ...before, ...fields, updatedAt };
  });
}

/** Removes an agent with its threads; a changed `default` is as it was in the beginning. Throws `agent_fixed`. */
export async function removeAgent(agents: Agents, at: AgentKey): Promise<Agent> {
  return inTurn(agents, at, async () => {
    const before = await readAgent(agents, at);
    if (before.origin !== "api") throw fixed(at.id);
    const keepsThreads = !canGo(before);
    if (!(await agents.store.removeAgent({ ...at, keepsThreads }))) throw noAgent(at.id);
    return before;
  });
}

/** Whether an agent can go while it is at work, with its threads. `default` can only be reset, and keeps them. */
export function canGo({ id, origin }: Agent): boolean {
  return origin === "api" && id !== DEFAULT_AGENT_ID;
}

/** No such agent for this account; one of another account looks just the same. */
export function noAgent(id: string, field?: string): Refusal {
  return new Refusal("agent_not_found", `There is no agent ${shown(id)} for this key.`, {
    ...(field === undefined ? {} : { field }),
    hint: "GET /v1/agents lists those there are; `default` always exists.",
  });
}

function inTurn<T>({ turns }: Agents, { accountId, id }: AgentKey, work: () => Promise<T>): Promise<T> {
  return turns.run(JSON.stringify(["agent", accountId, id]), work);
}

async function insert(agents: Agents, at: AgentKey, fields: AgentFields): Promise<Agent> {
  const createdAt = nowIso(agents);
  const row: StoredAgent = { ...at, body: JSON.stringify(fields), createdAt, updatedAt: createdAt };
  try {
    await agents.store.addAgent(row, AGENTS_MAX);
  } catch (error) {
    if (error instanceof KbsyncError && error.code === "agent_exists") throw agentExists(at.id);
    throw error;
  }
  return { id: at.id, ...fields, origin: "api", createdAt, updatedAt: createdAt };
}

/** The agent of the configuration with that id. */
function fixedAgent(agents: Agents, id: string): Agent | undefined {
  const config = agents.configured.find((each) => each.id === id);
  return config === undefined ? undefined : configuredAgent(agents, config);
}

function standIn(agents: Agents, id: string): Agent | undefined {
  return id === DEFAULT_AGENT_ID ? builtInAgent(agents) : undefined;
}

function builtInAgent({ defaultKnowledge }: Agents): Agent {
  return {
    id: DEFAULT_AGENT_ID,
    name: "Default",
    systemPrompt: DEFAULT_PROMPT,
    model: undefined,
    fallbackModel: undefined,
    temperature: undefined,
    knowledge: defaultKnowledge(),
    origin: "built-in",
    createdAt: undefined,
    updatedAt: undefined,
  };
}

function configuredAgent({ defaultKnowledge }: Agents, config: AgentConfig): Agent {
  const isDefault = config.id === DEFAULT_AGENT_ID;
  return {
    id: config.id,
    name: config.name ?? config.id,
    systemPrompt: config.systemPrompt || (isDefault ? DEFAULT_PROMPT : ""),
    model: config.model,
    fallbackModel: config.fallbackModel,
    temperature: config.temperature,
    knowledge: config.knowledge ?? (isDefault ? defaultKnowledge() : []),
    origin: "configuration",
    createdAt: undefined,
    updatedAt: undefined,
  };
}

function stored(row: StoredAgent | undefined): Agent | undefined {
  if (row === undefined) return undefined;
  const fields = JSON.parse(row.body) as AgentFields; // written above
  const { id, createdAt, updatedAt } = row;
  // JSON leaves out what is undefined.
  const { name, systemPrompt, model, fallbackModel, temperature, knowledge } = fields;
  const own = { name, systemPrompt, model, fallbackModel, temperature, knowledge };
  return { id, ...own, origin: "api", createdAt, updatedAt };
}

function fieldsOf(body: AgentBody): AgentFields {
  return {
    name: body.name.toWellFormed(),
    systemPrompt: body.systemPrompt.toWellFormed(),
    model: body.model ?? undefined,
    fallbackModel: body.fallbackModel ?? undefined,
    temperature: body.temperature ?? undefined,
    knowledge: body.knowledge,
  };
}

function changedFields(before: AgentFields, body: AgentChangeBody): AgentFields {
  const kept = <T>(given: T | null | undefined, old: T | undefined): T | undefined =>
    given === undefined ? old : (given ?? undefined);
  return {
    name: body.name?.toWellFormed() ?? before.name,
    systemPrompt: body.systemPrompt?.toWellFormed() ?? before.systemPrompt,
    model: kept(body.model, before.model),
    fallbackModel: kept(body.fallbackModel, before.fallbackModel),
    temperature: kept(body.temperature, before.temperature),
    knowledge: body.knowledge ?? before.knowledge,
  };
}

function agentExists(id: string): Refusal {
  return new Refusal("agent_exists", `There is an agent ${shown(id)} already.`, { field: "id" });
}

function fixed(id: string): Refusal {
  return new Refusal("agent_fixed", `The agent ${shown(id)} cannot be changed or removed here.`, {
    hint:
      id === DEFAULT_AGENT_ID
        ? "It always exists; change it with PUT, or in kb.agents of the configuration where it stands there."
        : "It stands in kb.agents of the configuration.",
  });
}

function nowIso({ nowMs }: Agents): string {
  return new Date(nowMs()).toISOString();
}
