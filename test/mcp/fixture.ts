import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import { openMcpHttp } from "../../src/mcp/http.ts";
import type { CallerDaemon } from "../../src/mcp/caller.ts";
import type { KnownFiles } from "../../src/mcp/known-files.ts";
import { openServiceConnections } from "../../src/mcp/service.ts";

/** What a tool gave, as a client sees it. */
export interface Called {
  readonly isError: boolean;
  readonly text: string;
  // Tests look at results field by field; what is not there shows as undefined.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

/** A client of the official SDK, connected. */
export interface Connected {
  readonly client: Client;
  call(this: void, tool: string, input?: Record<string, unknown>): Promise<Called>;
}

const Result = z.object({
  isError: z.boolean().default(false),
  content: z.array(z.object({ text: z.string() })),
  structuredContent: z.unknown().optional(),
});

/** The protocol's two ages: with the handshake of 2025 and without. */
export const AGES = ["legacy", "auto"] as const;

/** A client over a connected transport. */
export function connected(client: Client): Connected {
  return {
    client,
    call: async (name, input = {}) => {
      const result = Result.parse(await client.callTool({ name, arguments: input }));
      const text = result.content.map((part) => part.text).join("\n");
      return { isError: result.isError, text, data: result.structuredContent };
    },
  };
}

/** An MCP server over HTTP on a service, and clients of it. */
export interface McpGround {
  readonly url: string;
  connect(key: string, age?: (typeof AGES)[number]): Promise<Connected>;
  close(): Promise<void>;
}

export interface McpGroundOptions {
  /** URL of the service, read for each call. */
  readonly service: string;
  readonly files: KnownFiles;
  readonly daemon?: CallerDaemon;
  /** The key that the ledger's folders were synced with. */
  readonly ownKey?: string;
  readonly onDefect?: (error: unknown) => void;
  readonly nowMs?: () => number;
}

export async function openMcpGround(options: McpGroundOptions): Promise<McpGround> {
  const { files, ownKey } = options;
  const connections = openServiceConnections();
  const clients: Client[] = [];
  const server = await openMcpHttp({
    port: 0,
    version: "0.0.0-test",
    onDefect: options.onDefect ?? (() => undefined),
    nowMs: options.nowMs ?? Date.now,
    callerOf: (key) => ({
      reach: () =>
        Promise.resolve({
          service: connections.as({ apiUrl: options.service, dbUrl: options.service, pauthkey: key }),
          ownsLedger: key === ownKey,
          ...(options.daemon && key === ownKey && { daemon: options.daemon }),
        }),
      files: () => files,
    }),
  });
  return {
    url: server.url,
    connect: async (key, age = "legacy") => {
      const client = new Client(
        { name: "test", version: "1" },
        { versionNegotiation: { mode: age }, capabilities: {} },
      );
      const transport = new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      });
      await client.connect(transport);
      clients.push(client);
      return connected(client);
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await server.close();
      await connections.close();
    },
  };
}
