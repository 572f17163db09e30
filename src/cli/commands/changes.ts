import { setTimeout } from "node:timers/promises";
import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { pagesOf } from "../../lib/pages.ts";
import { type KnowledgeService, openServiceConnections } from "../../mcp/service.ts";
import { type Change, type ChangesAnswer, CHANGES_MAX, NOW } from "../../wire/changes.ts";
import { reachService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { makeStateFolder } from "../state/state-folder.ts";

interface ChangesOptions extends CommonOptions {
  readonly cursor?: string;
  readonly follow?: boolean;
  readonly json?: boolean;
}

type ChangesPage = ChangesAnswer["data"];

/** Time after which a broken stream is opened again. */
const AGAIN_MS = 1000;

/** `kbsync changes`: prints what happened to documents, from a cursor on. */
export function addChanges(program: Command, context: Context): void {
  program
    .command("changes")
    .description("list changes of documents at the service: created, updated, deleted")
    .option("--cursor <cursor>", `start after this cursor; "${NOW}": only changes from now on`)
    .option("--follow", "keep running and print further changes, until Ctrl-C")
    .option("--json", "print each change as one line of JSON")
    .action(async (options: ChangesOptions) => listChanges(context, options));
}

async function listChanges(context: Context, options: ChangesOptions): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const connections = openServiceConnections();
  try {
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
    const reached = await reachService(config, state, context.env, log);
    try {
      const service = connections.as(reached);
      const print = (change: Change): void => {
        context.stdout.write(options.json === true ? `${JSON.stringify(change)}\n` : lineOf(change));
      };
      const cursor = await printStored(service, options.cursor, print, context.signal);
      if (options.follow === true) await follow(service, cursor, print, context.signal);
      else if (options.json !== true) context.stdout.write(`cursor ${cursor}\n`);
    } finally {
      await reached.close();
    }
  } finally {
    await connections.close();
  }
}

/** Prints the changes that are stored, and returns the cursor after them. */
async function printStored(
  service: KnowledgeService,
  start: string | undefined,
  print: (change: Change) => void,
  signal: AbortSignal,
): Promise<string> {
  const read = async (cursor: string | undefined): Promise<ChangesPage> => {
    const page = await service.changes({ cursor, limit: CHANGES_MAX }, signal);
    if (page !== undefined) return page;
    throw new KbsyncError("the service has no feed of changes", { code: "service_refused" });
  };
  const next = ({ more, cursor }: ChangesPage): string | undefined => (more ? cursor : undefined);
  let end = "";
  for await (const { changes, cursor } of pagesOf({ what: "feed of changes", read, next, start })) {
    for (const change of changes) print(change);
    end = cursor;
  }
  return end;
}

/** Prints later changes until the signal aborts. Waits for a service that restarts. */
async function follow(
  service: KnowledgeService,
  start: string,
  print: (change: Change) => void,
  signal: AbortSignal,
): Promise<void> {
  let cursor = start;
  while (!signal.aborted) {
    try {
      for await (const change of service.followChanges(cursor, signal)) {
        print(change);
        ({ cursor } = change);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof KbsyncError && !error.retryable) throw error;
    }
    await setTimeout(AGAIN_MS, undefined, { signal }).catch(() => undefined);
  }
}

function lineOf({ type, timestamp, path, _id, version }: Change): string {
  const what = type.slice("document.".length);
  const text = what === "deleted" || version === 0 ? "" : `, version ${version}`;
  return `${timestamp}  ${what.padEnd(7)}  ${visibleLine(path ?? _id)}${text}\n`;
}
