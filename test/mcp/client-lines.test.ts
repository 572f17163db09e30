import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const TEXT = readFileSync(new URL("../../docs/MCP.md", import.meta.url), "utf8");
/** The table rows of all clients: name and what to do. */
const ROWS = [...TEXT.matchAll(/^\| \[?([A-Za-z. ,]+?)(?:\]\([^)]*\))? \| (.*) \|$/gm)]
  .map(([, client = "", line = ""]) => ({ client, line }))
  .filter(({ line }) => /kbsync(?:"|\s|`)/.test(line));
/** What the rows have as code, without their names of files and commands of the client itself. */
const CODES = ROWS.flatMap(({ client, line }) =>
  [...line.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => ({ client, code })),
);
const COMMANDS = CODES.filter(({ code }) => /^(?:claude|codex|gemini|code) /.test(code));
const CONFIGURATIONS = CODES.filter(({ code }) => code.startsWith("{"));

const Server = z.union([
  z.strictObject({ command: z.literal("kbsync"), args: z.tuple([z.literal("mcp")]) }),
  z.strictObject({
    type: z.literal("http").optional(),
    url: z.url(),
    headers: z.strictObject({ Authorization: z.string().startsWith("Bearer kb_") }).optional(),
  }),
]);
const Configuration = z.strictObject({ mcpServers: z.strictObject({ kbsync: Server }) });

/** The words that a shell makes of a line. */
function wordsOf(line: string): string[] {
  const { stdout, status } = spawnSync("sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" });
  expect([line, status]).toEqual([line, 0]);
  return stdout.trimEnd().split("\n");
}

describe("the lines for clients in docs/MCP.md", () => {
  it("the lines for clients in docs/MCP.md name every common client", () => {
    const clients = new Set(ROWS.map(({ client }) => client));
    for (const client of ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini CLI"]) {
      expect(clients).toContain(client);
    }
  });

  it.each(CONFIGURATIONS)(
    "the lines for clients in docs/MCP.md for $client are a configuration: $code",
    ({ code }) => {
      expect(() => Configuration.parse(JSON.parse(code))).not.toThrow();
    },
  );

  it.each(COMMANDS.filter(({ code }) => code.startsWith("code ")))(
    "the lines for clients in docs/MCP.md are a command of VS Code: $code",
    ({ code }) => {
      const [, option, json = "", ...rest] = wordsOf(code);
      const { name, ...server } = z.looseObject({ name: z.string() }).parse(JSON.parse(json));
      expect([option, name, Server.safeParse(server).success, rest]).toEqual([
        "--add-mcp",
        "kbsync",
        true,
        [],
      ]);
    },
  );

  it.each(COMMANDS.filter(({ code }) => !code.startsWith("code ")))(
    "the lines for clients in docs/MCP.md for $client are a command: $code",
    ({ code }) => {
      const [, mcp, action, ...rest] = wordsOf(code);
      expect([mcp, rest.includes("kbsync")]).toEqual(["mcp", true]);
      const url = rest.find((word) => /^https?:/.test(word));
      const isComplete = code.endsWith("kbsync mcp") || url?.endsWith("/mcp") === true;
      expect([action, isComplete]).toEqual(action === "login" ? ["login", false] : ["add", true]);
    },
  );
});
