import { describe, expect, it } from "vitest";
import { listAgents, readAgent } from "../../../src/kb/agents/agents.ts";
import type { Agents } from "../../../src/kb/agents/agents.ts";
import { AgentConfig, type KnowledgePart } from "../../../src/wire/agent.ts";

const OWN: readonly KnowledgePart[] = [{ tier: "fastest", owner: "own" }];
const DEFAULT: readonly KnowledgePart[] = [{ tier: "fastest", owner: "docs" }];
const agentsOf = (...configured: readonly Omit<AgentConfig, "systemPrompt">[]): Agents => ({
  configured: configured.map((config) => Object.assign({ systemPrompt: "" }, config)),
  defaultKnowledge: () => DEFAULT,
});

describe("the knowledge of a configured agent", () => {
  it.each<[title: string, config: Omit<AgentConfig, "systemPrompt">, knowledge: readonly KnowledgePart[]]>([
    ["`default` without knowledge searches the default knowledge", { id: "default" }, DEFAULT],
    ["another agent without knowledge searches nothing", { id: "desk" }, []],
    ["`default` searches only the knowledge it names", { id: "default", knowledge: [...OWN] }, OWN],
    ["`default` with empty knowledge searches nothing", { id: "default", knowledge: [] }, []],
    ["another agent searches the knowledge it names", { id: "desk", knowledge: [...OWN] }, OWN],
  ])("%s", (_title, config, knowledge) => {
    expect(readAgent(agentsOf(config), config.id)).toMatchObject({ id: config.id, knowledge });
  });
});

it("lists the agents in the order of the configuration, with `default` first unless it is configured", () => {
  const ids = (agents: Agents): string[] => listAgents(agents).map(({ id }) => id);
  expect(ids(agentsOf({ id: "b" }, { id: "a" }))).toEqual(["default", "b", "a"]);
  expect(ids(agentsOf({ id: "b" }, { id: "default" }))).toEqual(["b", "default"]);
});

it("refuses an unknown agent, and names the field", () => {
  expect(() => readAgent(agentsOf(), "nobody", "agent_id")).toThrow(
    expect.objectContaining({ code: "agent_not_found", field: "agent_id" }),
  );
});

it.each<[text: string, part: KnowledgePart]>([
  ["handbook", { tier: "fastest", owner: "handbook" }],
  ["moderate/handbook", { tier: "moderate", owner: "handbook" }],
  ["team/handbook", { tier: "fastest", owner: "team/handbook" }],
])("reads the knowledge %s as a tier and an owner", (text, part) => {
  expect(AgentConfig.parse({ id: "desk", knowledge: [text] }).knowledge).toEqual([part]);
});
