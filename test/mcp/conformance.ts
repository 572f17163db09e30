import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { ANSWER_TOKENS } from "../../src/mcp/budget.ts";
import type { Connected } from "./fixture.ts";

/** A knowledge base that the checks may use: each query finds something, and the document exists. */
export interface Sample {
  readonly query: string;
  readonly documentId: string;
}

/** Most tokens of all tools as a client sends them to its model with each question: without titles and output schemas. */
const DESCRIPTION_TOKENS = 1000;

/** Returns how many tools there are. Calls every tool, and checks each answer against the output schema that the server declares. */
export async function checkTools({ client }: Connected, { query, documentId }: Sample): Promise<number> {
  const inputs: Record<string, Record<string, unknown>> = {
    search: { query, top_k: 100 },
    fetch: { id: documentId },
    list_sources: {},
    status: {},
  };
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(inputs).toSorted());
  const described = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  expect(countTokens(JSON.stringify(described))).toBeLessThan(DESCRIPTION_TOKENS);
  for (const { name, inputSchema, outputSchema } of tools) {
    expect({ name, ...outputSchema }).toMatchObject({ name, type: "object", additionalProperties: false });
    const declared: object = outputSchema ?? {};
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    expect(ajv.validate(inputSchema, inputs[name]), `${name}: ${ajv.errorsText()}`).toBe(true);
    const answer = await client.callTool({ name, arguments: inputs[name] ?? {} });
    expect(answer.isError, `${name}: ${JSON.stringify(answer.content)}`).not.toBe(true);
    const matches = ajv.validate(declared, answer.structuredContent);
    expect(matches, `${name}: ${ajv.errorsText()}`).toBe(true);
    const texts = answer.content.map((part) => (part.type === "text" ? part.text : ""));
    const tokens = Math.max(countTokens(JSON.stringify(answer.structuredContent)), countTokens(texts.join()));
    expect(name === "fetch" || tokens <= ANSWER_TOKENS, `${name}: ${tokens} tokens`).toBe(true);
    // The tool without arguments takes anything.
    if (name === "status") continue;
    const refused = await client.callTool({ name, arguments: { query: 1, id: 1, cursor: 1 } });
    expect([name, refused.isError]).toEqual([name, true]);
  }
  return tools.length;
}
