import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkPrompts, checkResources, checkTools } from "../mcp/conformance.ts";
import { AGES, connected, type Connected } from "../mcp/fixture.ts";
import { kbsync, repositoryRoot, type Running, startUp, stop, temporaryFolder, until } from "./program.ts";

const temporary = temporaryFolder("mcp");
const docs = join(temporary.path, "docs");
const state = join(temporary.path, "state");
const program = join(repositoryRoot, "dist", "main.js");
let up: Running;

beforeAll(async () => {
  mkdirSync(docs);
  writeFileSync(join(docs, "tides.md"), "# Tides\n\nThe moon pulls the sea.\n");
  writeFileSync(join(docs, "bread.md"), "# Bread\n\nFlour, water, salt and time.\n");
  up = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
  await until("the first agreement", () => (up.output.stdout.includes("in agreement") ? true : undefined));
});
afterAll(async () => {
  await stop(up);
  temporary.remove();
});

async function connect(mode: (typeof AGES)[number], ...more: string[]): Promise<Connected> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const args = [program, "mcp", "--state-dir", state, ...more];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "inherit" }));
  return connected(client);
}

describe.each(AGES)("kbsync mcp over stdio, for a client of the age %s", (age) => {
  it("searches, reads by path and lists the folder", async () => {
    const { call, client } = await connect(age);
    const { data } = await call("search_passages", { query: "what moves the sea" });
    expect(data.results[0]).toMatchObject({ path: "tides.md", folder: docs });
    const read = await call("read_document", { document: join(docs, "tides.md") });
    expect(read.data).toMatchObject({ title: "Tides", next_offset: null });
    expect(read.data.text).toContain("The moon pulls the sea.");
    expect((await call("list_sources")).data.sources).toMatchObject([
      { folder: docs, documents: 2, collection: "fastest" },
    ]);
    await client.close();
  });

  it("answers as its schemas say", async () => {
    const connection = await connect(age);
    const { data } = await connection.call("search", { query: "what moves the sea" });
    const sample = { query: "what moves the sea", documentId: data.results[0].id, documents: 2 };
    expect(await checkTools(connection, sample)).toBe(7);
    expect(await checkResources(connection, sample)).toBe(2);
    expect(await checkPrompts(connection, sample)).toBe(2);
    await connection.client.close();
  });
});

it.each(AGES)(
  "a client of the age %s is notified of a file that changed while the service was killed",
  async (age) => {
    const { client, call } = await connect(age);
    const { data } = await call("search", { query: "flour and salt" });
    const uri = `kbsync://documents/${data.results[0].id}`;
    const updated: string[] = [];
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      updated.push(params.uri);
    });
    if (age === "legacy") await client.subscribeResource({ uri });
    else await client.listen({ resourceSubscriptions: [uri] });
    up.child.kill("SIGKILL");
    await once(up.child, "exit");
    writeFileSync(join(docs, "bread.md"), `# Bread\n\nFlour, water, salt and much time, ${age}.\n`);
    up = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
    await until("the notification", () => (updated.includes(uri) ? true : undefined));
    await client.close();
  },
);

it("uses the key of --key-file, with its account and its scopes", async () => {
  const keys = { foreign: ["--account", "other", "--scopes", "read"], writing: ["--scopes", "write"] };
  for (const [name, more] of Object.entries(keys)) {
    const made = await kbsync(["key", "create", name, "--state-dir", state, ...more]);
    writeFileSync(join(temporary.path, name), made.stdout);
  }
  const foreign = await connect("legacy", "--key-file", join(temporary.path, "foreign"));
  expect((await foreign.call("list_sources")).data).toEqual({ sources: [], next_cursor: null });
  expect((await foreign.call("read_document", { document: "tides.md" })).text).toMatch(/document_unknown/);
  await foreign.client.close();
  const writing = await connect("legacy", "--key-file", join(temporary.path, "writing"));
  expect((await writing.call("search_passages", { query: "moon" })).text).toMatch(/scope_missing/);
  await writing.client.close();
});

it("erases the document of a deleted file with --allow-erase alone, once it is named twice", async () => {
  const file = join(docs, "draft.md");
  writeFileSync(file, "# Draft\n\nA text to forget.\n");
  expect((await kbsync(["wait", "--state-dir", state])).code).toBe(0);
  const { call, client } = await connect("legacy", "--allow-erase");
  const { data } = await call("search", { query: "a text to forget" });
  const document = data.results[0].id;
  const request = { document, confirm: "Draft" };
  expect((await call("erase_document", request)).text).toMatch(/still_synced/);
  rmSync(file);
  expect((await kbsync(["wait", "--state-dir", state])).code).toBe(0);
  expect((await call("erase_document", { document, confirm: "draft" })).text).toMatch(/erase_unconfirmed/);
  const erased = await call("erase_document", request);
  expect(erased.data).toMatchObject({
    document_id: document,
    service: { documents: 1 },
    machine: { texts: 1 },
  });
  expect(erased.text).toContain("Left: log the log of kbsync");
  await client.close();
});

it("starts where no service runs, and each call says so", async () => {
  const client = new Client({ name: "test", version: "1" });
  const args = [program, "mcp", "--state-dir", join(temporary.path, "nothing")];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "inherit" }));
  const { isError, text } = await connected(client).call("search_passages", { query: "moon" });
  expect([isError, text]).toEqual([true, expect.stringMatching(/service_unreachable[\s\S]*kbsync up/)]);
  await client.close();
});

it("ends when its standard input does, and writes nothing that is no message", async () => {
  const child = spawn(process.execPath, [program, "mcp", "--state-dir", state], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const clientInfo = { name: "raw", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  child.stdin.write(
    `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\nno message\n`,
  );
  await until("the answer", () => (output.includes('"id":1') ? true : undefined));
  child.stdin.end();
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  for (const line of output.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
});

it("offers sign-in with --public-url, and reads clients' documents at public addresses alone", async () => {
  const options = ["--http", "--port", "0", "--public-url", "https://kb.example", "--state-dir", state];
  const child = spawn(process.execPath, [program, "mcp", ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const address = await until("the address", () => /http:\/\/\S+/.exec(output)?.[0]);
  expect(output).toContain("sign-in    https://kb.example");
  expect(statSync(join(state, "mcp-secret")).mode & 0o777).toBe(0o600);
  const refused = await fetch(address, { method: "POST" });
  expect(refused.headers.get("www-authenticate")).toContain(
    'resource_metadata="https://kb.example/.well-known/oauth-protected-resource/mcp"',
  );
  const query = new URLSearchParams({ client_id: "https://127.0.0.1/client.json" }).toString();
  const page = await fetch(new URL(`/oauth/authorize?${query}`, address));
  expect([page.status, await page.text()]).toEqual([400, expect.stringContaining("cannot be read")]);
  child.kill("SIGTERM");
  await once(child, "exit");
});

it.each([
  ["--host 0.0.0.0 --http", /needs --public-url/],
  ["--public-url https://kb.example", /need --http/],
  ["--http --public-url http://kb.example", /https address/],
  ["--host 0.0.0.0 --http --public-url http://127.0.0.1:7412", /https address of a proxy/],
  ["--http --public-url https://kb.example/kb", /without a path/],
])("kbsync mcp refuses %s", async (options, message) => {
  const { code, stderr } = await kbsync(["mcp", ...options.split(" "), "--state-dir", state]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});

it("serves HTTP with --http until it is stopped", async () => {
  const child = spawn(process.execPath, [program, "mcp", "--http", "--port", "0", "--state-dir", state], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const address = await until("the address", () => /http:\/\/\S+/.exec(output)?.[0]);
  expect((await fetch(address, { method: "POST" })).status).toBe(401);
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
});
