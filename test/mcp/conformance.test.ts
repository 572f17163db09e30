import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { checkTools, type Sample } from "./conformance.ts";
import { AGES, openMcpGround, type McpGround } from "./fixture.ts";

let service: Running;
let mcp: McpGround;
let sample: Sample;

/** Longer than two answers of the tool fetch. */
const ALMANAC = "🌒 almanac ".repeat(12_000);

beforeAll(async () => {
  service = await openRunning();
  for (let at = 0; at < 130; at++) {
    const body = createBody({
      title: `Tides ${at}`,
      description: `Of harbour ${at}. `.repeat(at % 40),
      content: `The moon pulls the sea ${at}. `.repeat(1 + (at % 50)),
      owner_id: `coast ${at % 30}`,
    });
    assert.equal((await service.send("POST", "/api/rag/resource", { body })).status, 201);
  }
  const body = createBody({ title: "Almanac", content: ALMANAC });
  const { json } = await service.send("POST", "/api/rag/resource", { body });
  mcp = await openMcpGround({
    service: service.url,
    files: NO_FILES,
    ownKey: service.key,
    daemon: { status: () => Promise.resolve(undefined) },
  });
  sample = { query: "moon and sea", documentId: json.data._id };
  // Loading the service takes seconds where other suites load theirs at the same time.
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

describe.each(AGES)("over HTTP, for a client of the age %s", (age) => {
  it("every tool answers as its output schema says, within the budget", async () => {
    expect(await checkTools(await mcp.connect(service.key, age), sample)).toBe(4);
  });
});
