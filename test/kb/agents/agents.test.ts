import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listAgents, readAgent } from "../../../src/kb/agents/agents.ts";
import type { Agents } from "../../../src/kb/agents/agents.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { openTurns } from "../../../src/lib/turns.ts";
import type { AgentConfig, KnowledgePart } from "../../../src/wire/agent.ts";

const OWN: readonly KnowledgePart[] = [{ tier: "fastest", owner: "own", top_k: 3 }];
const DEFAULT: readonly KnowledgePart[] = [{ tier: "fastest", owner: "docs", top_k: 5 }];

describe("the knowledge of a configured agent", () => {
  let store: Store;
  let accountId: string;
  beforeAll(async () => {
    store = await openSqliteStore();
    accountId = (await store.records.ensureAccount("local")).id;
  });
  afterAll(() => store.close());

  it.each<[title: string, config: Omit<AgentConfig, "systemPrompt">, knowledge: readonly KnowledgePart[]]>([
    ["`default` without knowledge searches the default knowledge", { id: "default" }, DEFAULT],
    ["another agent without knowledge searches nothing", { id: "desk" }, []],
    ["`default` searches only the knowledge it names", { id: "default", knowledge: [...OWN] }, OWN],
    ["`default` with empty knowledge searches nothing", { id: "default", knowledge: [] }, []],
    ["another agent searches the knowledge it names", { id: "desk", knowledge: [...OWN] }, OWN],
  ])("%s", async (_title, config, knowledge) => {
    const agents: Agents = {
      records: store.records,
      configured: [{ ...config, systemPrompt: "" }],
      defaultKnowledge: () => DEFAULT,
      nowMs: Date.now,
      turns: openTurns(),
    };
    const { id } = config;
    expect(await readAgent(agents, { accountId, id })).toMatchObject({ origin: "configuration", knowledge });
    const listed = (await listAgents(agents, accountId)).find((agent) => agent.id === id);
    expect(listed?.knowledge).toEqual(knowledge);
  });
});
