import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { type Command, InvalidArgumentError } from "commander";
import { type Config, loadConfig } from "../../config/load.ts";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { Caller } from "../../mcp/caller.ts";
import type { ServiceConnections } from "../../mcp/service.ts";
import { askDaemon } from "../../sync/daemon/control/client.ts";
import { runningService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { type CommonOptions, configRequest, wholeNumber } from "../output/options.ts";
import { readKeyFile, type StateFolder, stateFolder } from "../state/state-folder.ts";
import { programVersion } from "../output/version.ts";
import { resolve } from "node:path";
import { type KnownFiles, NO_FILES } from "../../mcp/known-files.ts";
import { openResourceLookup } from "../../sync/operate/resource-lookup.ts";

interface McpOptions extends CommonOptions {
  readonly http?: boolean;
  readonly port?: number;
  readonly keyFile?: string;
}

/** `kbsync mcp`: the knowledge base as tools for AI clients (Model Context Protocol). */
export function addMcp(program: Command, context: Context): void {
  program
    .command("mcp")
    .description("serve the knowledge base to AI clients as MCP tools, over stdin and stdout or HTTP")
    .option("--http", "serve streamable HTTP; clients send a key as bearer token")
    .option("-p, --port <n>", "port with --http; 0 for any free one (default: 7412)", wholeNumber(0, 65_535))
    .option(
      "--key-file <file>",
      "file with the key for the service, over stdio (default: as for other commands)",
      keyPath,
    )
    .action(async (options: McpOptions) => mcp(context, options));
}

async function mcp(context: Context, options: McpOptions): Promise<void> {
  const { http = false, port, keyFile, ...rest } = options;
  if (!http && port !== undefined) throw usage("--port needs --http");
  if (http && keyFile !== undefined)
    throw usage("--key-file is for stdio; over HTTP each client sends its own key");
  const config = loadConfig(configRequest(context, rest));
  // Reports a file without a key at once, not at the first call.
  const ownKey = keyFile === undefined ? undefined : existingKey(keyFile);
  // Loaded here, because no other command needs the protocol's code.
  const { openServiceConnections } = await import("../../mcp/service.ts");
  const connections = openServiceConnections();
  const log = openLog({ KBSYNC_LOG: "warn", ...context.env }, context.stderrIsTTY, context.invocation);
  const onDefect = (error: unknown): void => log.error({ err: error }, "an MCP call failed");
  const parts = { version: programVersion(), onDefect };
  try {
    if (http) {
      const { openMcpHttp, MCP_PORT_DEFAULT } = await import("../../mcp/http.ts");
      const callerOf = (key: string): Caller => callerWith(context, config, connections, key);
      const server = await openMcpHttp({
        ...parts,
        port: port ?? MCP_PORT_DEFAULT,
        callerOf,
        nowMs: context.nowMs,
      });
      context.stdout.write(
        `kbsync mcp\n  address    ${server.url}\n  key        Authorization: Bearer <key of the service with scope read>\n`,
      );
      if (!context.signal.aborted) await once(context.signal, "abort");
      await server.close();
      return;
    }
    const { serveMcpStdio } = await import("../../mcp/stdio.ts");
    await serveMcpStdio(
      { ...parts, caller: callerWith(context, config, connections, ownKey) },
      context.signal,
    );
  } finally {
    await connections.close();
  }
}

/** The caller with a key; undefined: the key that the other commands use. */
function callerWith(
  context: Context,
  config: Config,
  connections: ServiceConnections,
  key: string | undefined,
): Caller {
  const state = stateFolder(config.stateDir);
  return {
    // Found anew for each call: the embedded service may have restarted on another port.
    reach: async () => {
      const found = await addressOf(config, state, context.env, key !== undefined);
      const pauthkey = key ?? found.pauthkey ?? "";
      const ownsLedger = found.pauthkey !== undefined && isSame(pauthkey, found.pauthkey);
      return {
        service: connections.as({ ...found, pauthkey }),
        ownsLedger,
        ...(ownsLedger && {
          daemon: { status: (signal: AbortSignal) => askDaemon(state.path, "status", {}, { signal }) },
        }),
      };
    },
    files: () => openKnownFiles(config.stateDir),
  };
}

/** Returns the address of the service. `mayLackKey`: the caller has a key, so a hosted service needs no configured one. */
async function addressOf(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
  mayLackKey: boolean,
): Promise<{ readonly apiUrl: string; readonly dbUrl: string; readonly pauthkey?: string }> {
  try {
    return await runningService(config, state, env);
  } catch (error) {
    if (!mayLackKey || codeOf(error) !== "key_missing" || !("apiUrl" in config.service)) throw error;
    return config.service;
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((key) => createHash("sha256").update(key).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function existingKey(path: string): string {
  const key = readKeyFile(path);
  if (key !== undefined) return key;
  throw new KbsyncError(`there is no key file ${path}`, {
    code: "key_invalid",
    subject: path,
    hint: "`kbsync key create NAME --scopes read > FILE` makes one.",
  });
}

function keyPath(text: string): string {
  if (text !== "") return text;
  throw new InvalidArgumentError("expected a file");
}

function usage(message: string): KbsyncError {
  return new KbsyncError(message, { code: "usage" });
}

/** The ledger of a state folder as MCP's tools use it. Throws if there is one and it cannot be read. */
function openKnownFiles(stateDir: string): KnownFiles {
  const lookup = openResourceLookup(stateDir);
  if (lookup === undefined) return NO_FILES;
  return {
    sources: lookup.sources.map(({ path, ownerId, collectionId }) => ({
      folder: path,
      ownerId,
      collectionId,
    })),
    fileOf: (documentId) => {
      const file = lookup.fileOf(documentId);
      return file && { folder: file.source, path: file.path };
    },
    documentsOf: (path) => {
      const absolute = lookup.docOf(resolve("/", path));
      const below = lookup.sources.map((source) => lookup.docOf(resolve(source.path, path)));
      const found = [absolute, ...below].filter((documentId) => documentId !== undefined);
      return [...new Set(found)];
    },
    close: () => lookup.close(),
  };
}
