import { once } from "node:events";
import type { Transport } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { makeMcpServer, type McpParts } from "./server.ts";

/**
 * Serves MCP over standard input and output until the client closes its end or the signal is aborted. Nothing else may
 * write to standard output meanwhile: each line there is a protocol message.
 */
export async function serveMcpStdio(parts: McpParts, signal: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  process.stdin.once("end", end);
  process.stdin.once("close", end);
  signal.addEventListener("abort", end, { once: true });
  const connection = serveConnection(parts, new StdioServerTransport());
  if (signal.aborted) end();
  if (!ended.signal.aborted) await once(ended.signal, "abort");
  await connection.close();
  // An open standard input would keep the process from ending.
  process.stdin.destroy();
}

/** Serves one client over a transport. */
function serveConnection(parts: McpParts, transport: Transport): { close(): Promise<void> } {
  return serveStdio(() => makeMcpServer(parts), { onerror: parts.onDefect, transport });
}
