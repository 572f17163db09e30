import type { FastifyInstance, FastifyRequest } from "fastify";
import { AgentAnswer, AgentBody, AgentChangeBody, AgentsAnswer } from "../../../wire/agent.ts";
import type { AgentRecord } from "../../../wire/agent.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { changeAgent, createAgent, listAgents, readAgent, removeAgent } from "../../agents/agents.ts";
import type { Agent, Agents } from "../../agents/agents.ts";
import type { AgentKey } from "../../store/chat.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts, Operation } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Agents";
/** The longest system prompt, with every character escaped. */
const AGENT_BODY_BYTES_MAX = 256 * 1024;

/** Adds the operations on agents of the caller's account (additions). */
export function addAgentRoutes(server: FastifyInstance, parts: HttpParts, agents: Agents): void {
  const one = `${ROUTES.agents}/:id`;
  const add = <const A extends RouteDoc["answers"]>(operation: Operation<A>): void =>
    addOperation(server, parts, operation);

  add({
    method: "GET",
    url: ROUTES.agents,
    scope: "chat",
    doc: { summary: "Lists the agents of the account.", tag: TAG, answers: { 200: AgentsAnswer } },
    handle: async (_request, accountId) => {
      const found = await listAgents(agents, accountId);
      return answer(200, "Agents fetched successfully", { agents: found.map(recordOf) });
    },
  });

  add({
    method: "POST",
    url: ROUTES.agents,
    scope: "admin",
    doc: { summary: "Creates an agent.", tag: TAG, body: AgentBody, answers: { 201: AgentAnswer } },
    bodyBytesMax: AGENT_BODY_BYTES_MAX,
    handle: async (request, accountId) => {
      const agent = await createAgent(agents, accountId, readBody(AgentBody, request.body));
      return answer(201, "Agent created successfully", recordOf(agent));
    },
  });

  add({
    method: "GET",
    url: one,
    scope: "chat",
    doc: { summary: "Returns one agent.", tag: TAG, answers: { 200: AgentAnswer } },
    handle: async (request, accountId) => {
      const agent = await readAgent(agents, keyOf(request, accountId));
      return answer(200, "Agent fetched successfully", recordOf(agent));
    },
  });

  add({
    method: "PUT",
    url: one,
    scope: "admin",
    doc: { summary: "Changes an agent.", tag: TAG, body: AgentChangeBody, answers: { 200: AgentAnswer } },
    bodyBytesMax: AGENT_BODY_BYTES_MAX,
    handle: async (request, accountId) => {
      const body = readBody(AgentChangeBody, request.body);
      const agent = await changeAgent(agents, keyOf(request, accountId), body);
      return answer(200, "Agent updated successfully", recordOf(agent));
    },
  });

  add({
    method: "DELETE",
    url: one,
    scope: "admin",
    doc: { summary: "Removes an agent with its threads.", tag: TAG, answers: { 200: AgentAnswer } },
    handle: async (request, accountId) => {
      const agent = await removeAgent(agents, keyOf(request, accountId));
      return answer(200, "Agent deleted successfully", recordOf(agent));
    },
  });
}

function keyOf(request: FastifyRequest, accountId: string): AgentKey {
  return { accountId, id: idOf(request) };
}

function recordOf(agent: Agent): AgentRecord {
  return {
    _id: agent.id,
    name: agent.name,
    systemPrompt: agent.systemPrompt,
    model: agent.model ?? null,
    fallbackModel: agent.fallbackModel ?? null,
    temperature: agent.temperature ?? null,
    knowledge: agent.knowledge.map(({ tier, owner = null, top_k, score = null }) => ({
      tier,
      owner,
      top_k,
      score,
    })),
    origin: agent.origin,
    createdAt: agent.createdAt ?? null,
    updatedAt: agent.updatedAt ?? null,
  };
}
