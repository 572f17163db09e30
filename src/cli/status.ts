import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { loadConfig } from "../config/load.ts";
import { readStatus, type SkippedFile, type SourceStatus, type TroubledFile } from "../sync/status.ts";
import { findService } from "./compose.ts";
import type { Context } from "./context.ts";
import { FILES_SHOWN, holdLine, troubleLines } from "./follow.ts";
import { type CommonOptions, configRequest } from "./options.ts";
import { thousands } from "./progress.ts";
import { type StateFolder, stateFolder } from "./state-folder.ts";

interface StatusOptions extends CommonOptions {
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** How often `--watch` looks again, in milliseconds. */
const WATCH_EVERY_MS = 1000;
/** Failed files, and skipped ones, in the JSON output. */
const FILES_MAX = 10_000;

/** What `kbsync status --json` prints. */
interface Status {
  readonly service: {
    readonly address: string | null;
    /** Null: a hosted service is not asked, for that would need its key and the network. */
    readonly running: boolean | null;
  };
  readonly sources: readonly SourceStatus[];
  readonly failures: readonly TroubledFile[];
  readonly skipped: readonly SkippedFile[];
}

/** `kbsync status`: how far folder and knowledge base agree, from the ledger, whether a daemon runs or not. */
export function addStatus(program: Command, context: Context): void {
  program
    .command("status")
    .description("tell how far folders and knowledge base agree, whether a daemon runs or not")
    .option("-w, --watch", "stay and look again every second")
    .option("--json", "print it as JSON (with --watch: a line each time)")
    .action(async (options: StatusOptions) => status(context, options));
}

async function status(context: Context, options: StatusOptions): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  const state = stateFolder(config.stateDir);
  const look = async (): Promise<Status> => {
    const ledger = readStatus(state.path, FILES_MAX);
    return {
      service: await serviceLine(config, state, context),
      sources: ledger?.sources ?? [],
      failures: ledger?.troubled ?? [],
      skipped: ledger?.skipped ?? [],
    };
  };
  const show = (now: Status): string =>
    options.json === true
      ? `${JSON.stringify(now, undefined, options.watch === true ? 0 : 2)}\n`
      : statusText(now);
  let now = await look();
  context.stdout.write(show(now));
  while (options.watch === true && !context.signal.aborted) {
    await sleep(WATCH_EVERY_MS, undefined, { signal: context.signal }).catch(() => undefined);
    if (context.signal.aborted) break;
    now = await look();
    if (context.stdout.isTTY && options.json !== true) context.stdout.write("\u001b[H\u001b[2J");
    context.stdout.write(show(now));
  }
}

async function serviceLine(
  config: Parameters<typeof findService>[0],
  state: StateFolder,
  context: Context,
): Promise<Status["service"]> {
  if (!("embedded" in config.service)) return { address: config.service.dbUrl, running: null };
  const service = await findService(config, state, context.env);
  return { address: service?.dbUrl ?? null, running: service !== undefined };
}

/** The status for a person. */
export function statusText({ service, sources, failures }: Status): string {
  const lines = [serviceText(service)];
  if (sources.length === 0) lines.push("nothing was synced with this state folder yet");
  for (const source of sources) {
    const counts = [`${thousands(source.inAgreement)} of ${thousands(source.files)} files in agreement`];
    if (source.waiting > 0) counts.push(`${thousands(source.waiting)} waiting`);
    if (source.failed > 0) counts.push(`${thousands(source.failed)} failed`);
    if (source.held > 0) counts.push(`${thousands(source.held)} deletes held`);
    if (source.skipped > 0) counts.push(`${thousands(source.skipped)} skipped`);
    if (source.unreadable > 0) counts.push(`${thousands(source.unreadable)} unreadable`);
    lines.push(`source   ${source.path}`, `         ${counts.join(", ")}`);
    lines.push(`         owner ${source.ownerId}, collection ${source.collectionId ?? "not known yet"}`);
    const hold = holdLine(source);
    if (hold !== undefined) lines.push(`         ${hold}`);
    if (source.degraded !== null) lines.push(`         ${source.degraded}`);
  }
  return `${lines.join("\n")}\n${troubleLines(failures, FILES_SHOWN)}`;
}

function serviceText({ address, running }: Status["service"]): string {
  if (running === null) return `service  ${address} (not asked)`;
  return `service  ${running ? address : "not running"}`;
}
