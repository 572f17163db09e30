import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changeAgent } from "../../../src/kb/agents/agents.ts";
import { LOCAL_ACCOUNT } from "../../../src/kb/keys/keys.ts";
import { openTurns } from "../../../src/lib/turns.ts";
import { AgentRecord } from "../../../src/wire/agent.ts";
import { openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

let running: Running;
let admin: string;
beforeAll(async () => {
  running = await openRunning({
    chat: {
      defaultKnowledge: () => [{ tier: "fastest", owner: "docs", top_k: 5 }],
      agents: [{ id: "desk", systemPrompt: "You serve the desk.", knowledge: [] }],
    },
  });
  admin = await running.issueKey("local", ["admin"]);
}, 60_000);
afterAll(() => running.close());

const send = (method: string, path: string, body?: object): Promise<Answered> =>
  running.send(method, `/v1/agents${path}`, { key: admin, ...(body === undefined ? {} : { body }) });

describe("agents", () => {
  it("lists configured agents, `default` and the account's own, and creates, changes and removes the latter", async () => {
    const list = async () => (await send("GET", "")).json.data.agents.map(({ _id }: { _id: string }) => _id);
    expect(await list()).toEqual(["default", "desk"]);
    const made = await send("POST", "", {
      id: "harbour",
      name: "Harbour",
      temperature: 0.2,
      knowledge: [{ owner: "docs", top_k: "8", score: 0.1 }],
    });
    expect(made.status).toBe(201);
    expect(AgentRecord.strict().parse(made.json.data)).toMatchObject({
      _id: "harbour",
      systemPrompt: "",
      model: null,
      temperature: 0.2,
      knowledge: [{ tier: "fastest", owner: "docs", top_k: 8, score: 0.1 }],
      origin: "api",
    });
    expect(await list()).toEqual(["default", "desk", "harbour"]);
    const changed = await send("PUT", "/harbour", { temperature: null, model: "m" });
    expect(changed.json.data).toMatchObject({ name: "Harbour", temperature: null, model: "m" });
    expect((await send("GET", "/harbour")).json.data).toEqual(changed.json.data);
    expect((await send("DELETE", "/harbour")).status).toBe(200);
    expect((await send("GET", "/harbour")).status).toBe(404);
    const named = await send("POST", "", { name: "Any" });
    expect(named.json.data._id).toMatch(/^[0-9a-f]{24}$/);
  });

  it("creates an agent once and answers a concurrent create with a conflict", async () => {
    const names = Array.from({ length: 8 }, (_, at) => `Twin ${at}`);
    const made = await Promise.all(names.map((name) => send("POST", "", { id: "twin", name })));
    const won = made.find(({ status }) => status === 201);
    expect(made.filter(({ status }) => status === 409)).toHaveLength(names.length - 1);
    expect((await send("GET", "/twin")).json.data).toEqual(won?.json.data);
    for (const { json } of made.filter(({ status }) => status === 409))
      expect(json.error).toMatchObject({ code: "agent_exists", field: "id" });
    await send("DELETE", "/twin");
  });

  it("applies each of several concurrent changes to `default`", async () => {
    const changes = [{ name: "One" }, { name: "Two" }, { name: "Three" }];
    const changed = await Promise.all(changes.map((change) => send("PUT", "/default", change)));
    expect(changed.map(({ status }) => status)).toEqual([200, 200, 200]);
    const { name } = (await send("GET", "/default")).json.data;
    expect(changes).toContainEqual({ name });
    await send("DELETE", "/default");
  });

  it.each(["default", "own"])("applies concurrent changes of several fields to the agent %s", async (id) => {
    if (id !== "default") await send("POST", "", { id, name: "Own" });
    const changes = [{ name: "New" }, { temperature: 1.5 }, { systemPrompt: "Mine." }, { model: "m" }];
    // Calls at once, so that each would read the agent before the first has written it.
    const parts = { configured: [], defaultKnowledge: () => [], nowMs: Date.now, turns: openTurns() };
    const agents = { ...parts, records: running.store.records };
    const account = await running.store.records.ensureAccount(LOCAL_ACCOUNT);
    const at = { accountId: account.id, id };
    await Promise.all(changes.map((change) => changeAgent(agents, at, change)));
    expect((await send("GET", `/${id}`)).json.data).toMatchObject(Object.assign({}, ...changes));
    await send("DELETE", `/${id}`);
  });

  it("resets `default` when its change is deleted", async () => {
    const before = (await send("GET", "/default")).json.data;
    expect(before).toMatchObject({ origin: "built-in", knowledge: [{ owner: "docs" }] });
    expect((await send("PUT", "/default", { systemPrompt: "Mine." })).json.data).toMatchObject({
      origin: "api",
      systemPrompt: "Mine.",
      knowledge: [{ owner: "docs" }],
    });
    expect((await send("DELETE", "/default")).status).toBe(200);
    expect((await send("GET", "/default")).json.data).toEqual(before);
  });

  it("says of an agent that cannot be changed here where it can be", async () => {
    const hints = [];
    for (const path of ["/desk", "/default"]) hints.push((await send("DELETE", path)).json.error.hint);
    expect(hints).toEqual([
      "The configuration defines it in kb.agents.",
      "It always exists; change it with PUT, or in kb.agents if the configuration defines it.",
    ]);
  });

  it.each<[string, string, string, object | undefined, number, string]>([
    ["a change of a configured agent", "PUT", "/desk", { name: "Mine" }, 409, "agent_fixed"],
    ["the removal of a configured agent", "DELETE", "/desk", undefined, 409, "agent_fixed"],
    ["the removal of the built-in agent", "DELETE", "/default", undefined, 409, "agent_fixed"],
    ["a taken id", "POST", "", { id: "desk", name: "Mine" }, 409, "agent_exists"],
    ["the creation of `default`", "POST", "", { id: "default", name: "Mine" }, 409, "agent_exists"],
    ["an unknown agent", "PUT", "/nobody", { name: "Mine" }, 404, "agent_not_found"],
    ["an empty change", "PUT", "/default", {}, 400, "invalid_body"],
    ["a missing name", "POST", "", {}, 400, "invalid_field"],
    ["a blank name", "POST", "", { name: " " }, 400, "invalid_field"],
    ["an id with a slash", "POST", "", { id: "a/b", name: "A" }, 400, "invalid_field"],
    ["an id of 65 characters", "POST", "", { id: "a".repeat(65), name: "A" }, 400, "invalid_field"],
    [
      "a prompt of 32,001 characters",
      "POST",
      "",
      { name: "A", systemPrompt: "a".repeat(32_001) },
      400,
      "invalid_field",
    ],
    ["a temperature of 2.1", "POST", "", { name: "A", temperature: 2.1 }, 400, "invalid_field"],
    [
      "nine places",
      "POST",
      "",
      { name: "A", knowledge: Array.from({ length: 9 }, () => ({})) },
      400,
      "invalid_field",
    ],
    ["an unknown tier", "POST", "", { name: "A", knowledge: [{ tier: "slow" }] }, 400, "invalid_field"],
    ["top_k of 51", "POST", "", { name: "A", knowledge: [{ top_k: 51 }] }, 400, "invalid_field"],
    ["a score of 1.1", "POST", "", { name: "A", knowledge: [{ score: 1.1 }] }, 400, "invalid_field"],
  ])("an agent is refused with %s", async (_name, method, path, body, status, code) => {
    expect(await send(method, path, body)).toMatchObject({
      status,
      json: { success: false, error: { code } },
    });
  });

  it("refuses more than 100 agents per account", async () => {
    const key = await running.issueKey("many", ["admin"]);
    const make = () => running.send("POST", "/v1/agents", { key, body: { name: "One" } });
    await Promise.all(Array.from({ length: 100 }, make));
    expect(await make()).toMatchObject({ status: 409, json: { error: { code: "too_many_agents" } } });
  });
});
