import type { ListResourcesResult } from "@modelcontextprotocol/client";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { ANSWER_TOKENS } from "../../src/mcp/budget.ts";
import type { Connected } from "./fixture.ts";

/** A knowledge base that the checks may use: each query finds something, and the document exists. */
export interface Sample {
  readonly query: string;
  readonly documentId: string;
  /** Number of documents that the key can see. */
  readonly documents: number;
}

/** Tools whose answers hold the text of a document, and not a list. */
const READERS = new Set(["read_document", "fetch"]);

/** Returns how many tools there are. Calls every tool, and checks each answer against the output schema that the server declares. */
export async function checkTools({ client }: Connected, { query, documentId }: Sample): Promise<number> {
  const inputs: Record<string, Record<string, unknown>> = {
    search_passages: { query, top_k: 100 },
    read_document: { document: documentId },
    list_sources: {},
    list_changes: {},
    plan_sync: {},
    search: { query },
    fetch: { id: documentId },
  };
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(inputs).toSorted());
  for (const { name, inputSchema, outputSchema } of tools) {
    expect({ name, ...outputSchema }).toMatchObject({ name, type: "object", additionalProperties: false });
    const declared: object = outputSchema ?? {};
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    expect(ajv.validate(inputSchema, inputs[name]), `${name}: ${ajv.errorsText()}`).toBe(true);
    const answer = await client.callTool({ name, arguments: inputs[name] ?? {} });
    expect(answer.isError, `${name}: ${JSON.stringify(answer.content)}`).not.toBe(true);
    const matches = ajv.validate(declared, answer.structuredContent);
    expect(matches, `${name}: ${ajv.errorsText()}`).toBe(true);
    const tokens = Math.max(
      ...[answer.structuredContent, answer.content].map((part) => countTokens(JSON.stringify(part))),
    );
    expect(READERS.has(name) || tokens <= ANSWER_TOKENS, `${name}: ${tokens} tokens`).toBe(true);
    const refused = await client.callTool({
      name,
      arguments: { query: 1, document: 1, id: 1, cursor: 1, limit: "1" },
    });
    expect([name, refused.isError]).toEqual([name, true]);
  }
  return tools.length;
}

/** Returns how many resources there are. Lists them page by page, and reads some of them. */
export async function checkResources(
  { client }: Connected,
  { documentId, documents }: Sample,
): Promise<number> {
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
    "kbsync://documents/{id}{?offset}",
  ]);
  const uris: string[] = [];
  // `listResources` without a cursor would read all pages.
  for (let params: { cursor?: string } | undefined = {}; params !== undefined;) {
    const page: ListResourcesResult = await client.request({ method: "resources/list", params });
    expect(countTokens(JSON.stringify(page.resources))).toBeLessThanOrEqual(ANSWER_TOKENS);
    uris.push(...page.resources.map(({ uri }) => uri));
    params = page.nextCursor === undefined ? undefined : { cursor: page.nextCursor };
  }
  expect([uris.length, new Set(uris).size]).toEqual([documents, documents]);
  expect(uris).toContain(`kbsync://documents/${documentId}`);
  for (const uri of uris.slice(0, 5)) {
    const { contents } = await client.readResource({ uri });
    expect(contents).toEqual([{ uri, mimeType: "text/plain", text: expect.stringMatching(/\S/) }]);
  }
  for (const uri of [
    "kbsync://documents/ffffffffffffffffffffffff",
    "kbsync://documents/a/b",
    "file:///etc/passwd",
  ]) {
    await expect(client.readResource({ uri })).rejects.toThrow(/not found/i);
  }
  await expect(client.listResources({ cursor: "made up" })).rejects.toThrow(/cursor_invalid/);
  return uris.length;
}

/** Returns how many prompts there are. Gets each. */
export async function checkPrompts({ client }: Connected, { query, documentId }: Sample): Promise<number> {
  const { prompts } = await client.listPrompts();
  const inputs: Record<string, Record<string, string>> = {
    answer: { question: query, source: "sea" },
    summarize: { document: documentId },
  };
  expect(prompts.map(({ name }) => name)).toEqual(Object.keys(inputs));
  const tools = new Set((await client.listTools()).tools.map(({ name }) => name));
  for (const { name, arguments: declared = [] } of prompts) {
    expect(declared.map((one) => one.name)).toEqual(Object.keys(inputs[name] ?? {}));
    const { messages } = await client.getPrompt({ name, arguments: inputs[name] ?? {} });
    const text = JSON.stringify(messages);
    for (const value of Object.values(inputs[name] ?? {})) expect(text).toContain(value);
    const named = text.match(/\b(search|read|list)_[a-z]+\b/g) ?? [];
    expect(named.filter((tool) => !tools.has(tool))).toEqual([]);
    expect(named).not.toEqual([]);
    await expect(client.getPrompt({ name, arguments: {} })).rejects.toThrow(/invalid/i);
  }
  return prompts.length;
}
