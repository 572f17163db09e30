import type { FastifyInstance } from "fastify";
import { AgentsAnswer } from "../../../wire/agent.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { listAgents, type Agents } from "../../agents/agents.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";

/** Adds the list of agents (an addition). */
export function addAgentRoutes(server: FastifyInstance, parts: HttpParts, agents: Agents): void {
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.agents,
    scope: "chat",
    doc: { summary: "Lists the agents.", tag: "Agents", answers: { 200: AgentsAnswer } },
    handle: async () =>
      answer(200, "Agents fetched successfully", {
        agents: listAgents(agents).map((agent) => ({
          _id: agent.id,
          systemPrompt: agent.systemPrompt,
          model: agent.model ?? null,
          fallbackModel: agent.fallbackModel ?? null,
          knowledge: agent.knowledge.map(({ tier, owner = null }) => ({ tier, owner })),
        })),
      }),
  });
}
