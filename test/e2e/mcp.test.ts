import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkTools } from "../mcp/conformance.ts";
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
  await until("the first agreement", () => (up.output.stdout.includes(" searchable, ") ? true : undefined));
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
    const { data } = await call("search", { query: "what moves the sea" });
    expect(data.results[0]).toMatchObject({ path: "tides.md", folder: docs });
    const read = await call("fetch", { id: join(docs, "tides.md") });
    expect(read.data).toMatchObject({ title: "Tides", next_offset: null });
    expect(read.data.text).toContain("The moon pulls the sea.");
    expect((await call("list_sources")).data.sources).toMatchObject([
      { folder: docs, documents: 2, collection: "fastest" },
    ]);
    expect((await call("status")).data).toMatchObject({
      daemon: "running",
      folders: [{ folder: docs, files: 2, searchable: 2, waiting: 0 }],
    });
    await client.close();
  });

  it("answers as its schemas say", async () => {
    const connection = await connect(age);
    const { data } = await connection.call("search", { query: "what moves the sea" });
    const sample = { query: "what moves the sea", documentId: data.results[0].id };
    expect(await checkTools(connection, sample)).toBe(4);
    await connection.client.close();
  });
});

it("uses the key of --key-file, with its account and its scopes", async () => {
  const keys = { foreign: ["--account", "other", "--scopes", "read"], writing: ["--scopes", "write"] };
  for (const [name, more] of Object.entries(keys)) {
    const made = await kbsync(["key", "create", name, "--state-dir", state, ...more]);
    writeFileSync(join(temporary.path, name), made.stdout);
  }
  const foreign = await connect("legacy", "--key-file", join(temporary.path, "foreign"));
  expect((await foreign.call("list_sources")).data).toEqual({ sources: [], next_cursor: null });
  expect((await foreign.call("fetch", { id: "tides.md" })).text).toMatch(/document_unknown/);
  await foreign.client.close();
  const writing = await connect("legacy", "--key-file", join(temporary.path, "writing"));
  expect((await writing.call("search", { query: "moon" })).text).toMatch(/scope_missing/);
  await writing.client.close();
});

it("starts where no service runs, and each call says so", async () => {
  const client = new Client({ name: "test", version: "1" });
  const args = [program, "mcp", "--state-dir", join(temporary.path, "nothing")];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "inherit" }));
  const { isError, text } = await connected(client).call("search", { query: "moon" });
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

it("kbsync mcp refuses --port without --http", async () => {
  const { code, stderr } = await kbsync(["mcp", "--port", "0", "--state-dir", state]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--port needs --http")]);
});
