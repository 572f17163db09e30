import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { newHexId } from "../../lib/ids.ts";
import type { Turns } from "../../lib/turns.ts";
import { DEFAULT_AGENT_ID } from "../../wire/agent.ts";
import type { AgentBody, AgentChangeBody, AgentConfig, KnowledgePart } from "../../wire/agent.ts";
import { Refusal, shown } from "../resources/refusal.ts";
import type { AgentKey, ChatRecords, StoredAgent } from "../store/chat.ts";

/** Configurable fields of an agent. */
export interface AgentFields {
  readonly name: string;
  readonly systemPrompt: string;
  /** Undefined: the configured model. */
  readonly model: string | undefined;
  readonly fallbackModel: string | undefined;
  readonly temperature: number | undefined;
  readonly knowledge: readonly KnowledgePart[];
}

/** An agent of an account. */
export interface Agent extends AgentFields {
  readonly id: string;
  /** `api`: the account stores it and can change it. */
  readonly origin: "built-in" | "configuration" | "api";
  readonly createdAt: string | undefined;
  readonly updatedAt: string | undefined;
}

/** Dependencies of the operations on agents. */
export interface Agents {
  readonly records: Pick<ChatRecords, "addAgent" | "changeAgent" | "removeAgent" | "agent" | "agents">;
  /** Agents of the configuration, available to every account. */
  readonly configured: readonly AgentConfig[];
  /** Knowledge of `default` unless configured or changed; called each time. */
  readonly defaultKnowledge: () => readonly KnowledgePart[];
  readonly nowMs: () => number;
  /** Serialises changes of an agent by this process, which read and then write it. */
  readonly turns: Turns;
}

/** Tries of a change. Another process has written a change meanwhile each time. */
const TRIES_MAX = 10;
/** Maximum agents of an account. */
const AGENTS_MAX = 100;

/** System prompt of `default` unless configured or changed. */
const DEFAULT_PROMPT =
  "You answer questions about the user's documents and images. Be brief and exact. Where the material does not hold the answer, say so.";

/** Reads an agent. Throws `agent_not_found`; `field` is the field of the body that names the agent, if any. */
export async function readAgent(agents: Agents, at: AgentKey, field?: string): Promise<Agent> {
  const agent =
    fixedAgent(agents, at.id) ?? stored(await agents.records.agent(at)) ?? fallback(agents, at.id);
  if (agent === undefined) throw noAgent(at.id, field);
  return agent;
}

/** Lists the agents of the configuration, then the account's own by age. Always includes `default`. */
export async function listAgents(agents: Agents, accountId: string): Promise<readonly Agent[]> {
  const configured = agents.configured.map((config) => configuredAgent(agents, config));
  const own = (await agents.records.agents(accountId))
    .flatMap((row) => stored(row) ?? [])
    // An agent of the configuration shadows one of the account with the same id.
    .filter(({ id }) => fixedAgent(agents, id) === undefined);
  const found = [...configured, ...own];
  const hasDefault = found.some(({ id }) => id === DEFAULT_AGENT_ID);
  return hasDefault ? found : [builtInAgent(agents), ...found];
}

/** Creates an agent. Throws `agent_exists` and `too_many_agents`. */
export async function createAgent(agents: Agents, accountId: string, body: AgentBody): Promise<Agent> {
  const id = body.id ?? newHexId(agents.nowMs());
  if (fixedAgent(agents, id) !== undefined || id === DEFAULT_AGENT_ID) throw agentExists(id);
  return insert(agents, { accountId, id }, fieldsOf(body));
}

/** Changes an agent. The first change of `default` stores it for the account. Throws `agent_fixed`. */
export async function changeAgent(agents: Agents, at: AgentKey, body: AgentChangeBody): Promise<Agent> {
  if (Object.keys(body).length === 0) {
    throw new Refusal("invalid_body", "The body names nothing to change.");
  }
  return inTurn(agents, at, async () => {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const changed = await tryChange(agents, at, body);
      if (changed !== undefined) return changed;
    }
    throw new Refusal("overloaded", "Other changes of this agent came in between each time.");
  });
}

/** Undefined: another process has changed the agent since it was read. */
async function tryChange(agents: Agents, at: AgentKey, body: AgentChangeBody): Promise<Agent | undefined> {
  const row = await agents.records.agent(at);
  const before = fixedAgent(agents, at.id) ?? stored(row) ?? fallback(agents, at.id);
  if (before === undefined) throw noAgent(at.id);
  if (before.origin === "configuration") throw fixed(at.id);
  const fields = changedFields(before, body);
  if (row === undefined) {
    return insert(agents, at, fields).catch((error: unknown) => {
      if (codeOf(error) === "agent_exists") return undefined;
      throw error;
    });
  }
  const updatedAt = nowIso(agents);
  const change = { ...at, body: JSON.stringify(fields), expectedBody: row.body, updatedAt };
  return (await agents.records.changeAgent(change)) ? { ...before, ...fields, updatedAt } : undefined;
}

/** Removes an agent with its threads. Resets a changed `default`, which keeps its threads. Throws `agent_fixed`. */
export async function removeAgent(agents: Agents, at: AgentKey): Promise<Agent> {
  return inTurn(agents, at, async () => {
    const before = await readAgent(agents, at);
    if (before.origin !== "api") throw fixed(at.id);
    const keepsThreads = !isRemovable(before);
    if (!(await agents.records.removeAgent({ ...at, keepsThreads }))) throw noAgent(at.id);
    return before;
  });
}

/** Whether an agent can be removed with its threads, even while it answers. `default` can only be reset. */
export function isRemovable({ id, origin }: Agent): boolean {
  return origin === "api" && id !== DEFAULT_AGENT_ID;
}

/** Refusal for an unknown agent. An agent of another account gives the same answer. */
export function noAgent(id: string, field?: string): Refusal {
  return new Refusal("agent_not_found", `There is no agent ${shown(id)} for this key.`, {
    ...(field === undefined ? {} : { field }),
    hint: "GET /v1/agents lists the agents of this key; `default` always exists.",
  });
}

function inTurn<T>({ turns }: Agents, { accountId, id }: AgentKey, work: () => Promise<T>): Promise<T> {
  return turns.run(JSON.stringify(["agent", accountId, id]), work);
}

async function insert(agents: Agents, at: AgentKey, fields: AgentFields): Promise<Agent> {
  const createdAt = nowIso(agents);
  const row: StoredAgent = { ...at, body: JSON.stringify(fields), createdAt, updatedAt: createdAt };
  try {
    await agents.records.addAgent(row, AGENTS_MAX);
  } catch (error) {
    if (error instanceof KbsyncError && error.code === "agent_exists") throw agentExists(at.id);
    throw error;
  }
  return { id: at.id, ...fields, origin: "api", createdAt, updatedAt: createdAt };
}

/** Returns the agent of the configuration with this id. */
function fixedAgent(agents: Agents, id: string): Agent | undefined {
  const config = agents.configured.find((each) => each.id === id);
  return config === undefined ? undefined : configuredAgent(agents, config);
}

function fallback(agents: Agents, id: string): Agent | undefined {
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
  // JSON omits undefined fields.
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
  /** Undefined keeps the old value, null clears it. */
  const changed = <T>(given: T | null | undefined, old: T | undefined): T | undefined =>
    given === undefined ? old : (given ?? undefined);
  return {
    name: body.name?.toWellFormed() ?? before.name,
    systemPrompt: body.systemPrompt?.toWellFormed() ?? before.systemPrompt,
    model: changed(body.model, before.model),
    fallbackModel: changed(body.fallbackModel, before.fallbackModel),
    temperature: changed(body.temperature, before.temperature),
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
        ? "It always exists; change it with PUT, or in kb.agents if the configuration defines it."
        : "The configuration defines it in kb.agents.",
  });
}

function nowIso({ nowMs }: Agents): string {
  return new Date(nowMs()).toISOString();
}
