import type { Command } from "commander";
import { KbsyncError } from "../../lib/failure.ts";
import { changeLedger } from "../../sync/operator/offline.ts";
import { erase as eraseHere } from "../../sync/operator/erase.ts";
import { openServiceEraser } from "../../sync/remote/erasure.ts";
import type { Erased, RequestOf } from "../../wire/daemon.ts";
import type { Remainder } from "../../wire/erasure.ts";
import { reachService } from "../compose/reached-service.ts";
import { locatedPath, nothingSynced, openOperator, type Operator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { counted } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";
import { completeErasure } from "../state/remains.ts";
import { makeStateFolder, type StateFolder } from "../state/state-folder.ts";

interface EraseOptions extends CommonOptions {
  readonly document?: string;
  readonly owner?: string;
  readonly json?: boolean;
}

/** `kbsync erase PATH`: removes documents without a trace. */
export function addErase(program: Command, context: Context): void {
  program
    .command("erase")
    .description(
      "remove the text of a deleted or excluded file everywhere: service, index, trash, ledger and log",
    )
    .argument("[path]", "the file, or a folder with all below it")
    .option("--document <id>", "the document with this id instead")
    .option(
      "--owner <id>",
      "all documents of this owner instead; its sources must have left the configuration",
    )
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: EraseOptions) => run(context, path, options));
}

async function run(context: Context, path: string | undefined, options: EraseOptions): Promise<void> {
  const { document, owner } = options;
  const operator = openOperator(context, options);
  const request: RequestOf<"erase"> = {
    ...locatedPath(operator, path),
    ...(document !== undefined && { document }),
    ...(owner !== undefined && { owner }),
  };
  if (Object.keys(request).length !== 1) {
    throw new KbsyncError("erase needs either a path, --document or --owner", {
      code: "usage",
      hint: "`kbsync erase --help` shows examples of each.",
    });
  }
  const report = (await operator.ask("erase", request)) ?? (await eraseAlone(context, operator, request));
  if (options.json === true) printJson(context, report);
  else context.stdout.write(reportText(report, report.service.remains));
}

/** Erases while no daemon runs, and reports as a daemon does. */
async function eraseAlone(
  context: Context,
  operator: Operator,
  request: RequestOf<"erase">,
): Promise<Erased> {
  const state = makeStateFolder(operator.config.stateDir);
  return completeErasure(await eraseWithService(context, operator, request, state), state);
}

/** Erases with the ledger and the service. Starts the embedded service for this time unless it runs. */
async function eraseWithService(
  context: Context,
  operator: Operator,
  request: RequestOf<"erase">,
  state: StateFolder,
): Promise<Erased> {
  const { config } = operator;
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  const service = await reachService(config, state, context.env, log);
  try {
    const eraser = openServiceEraser(service);
    const done = await changeLedger(config.stateDir, (ledger) =>
      eraseHere(
        { ledger, stateDir: config.stateDir, sources: operator.sources(), service: eraser },
        request,
        context.signal,
      ),
    );
    if (done !== undefined) return done;
    const { document, owner } = request;
    const nothing = { files: 0, texts: 0, activities: 0 };
    if (document !== undefined)
      return { ...nothing, service: await eraser.resources([document], context.signal) };
    if (owner !== undefined) return { ...nothing, service: await eraser.owner(owner, context.signal) };
    throw nothingSynced(config.stateDir);
  } finally {
    await service.close();
  }
}

function reportText({ files, texts, activities, service }: Erased, remains: readonly Remainder[]): string {
  const atService = [
    counted(service.documents, "document"),
    counted(service.chunks, "chunk"),
    counted(service.files, "uploaded file"),
    counted(service.requests, "note of a request", "notes of requests"),
    counted(service.messages, "webhook message"),
    counted(service.turns, "answer of a thread", "answers of threads"),
    counted(service.images, "image of a thread", "images of threads"),
  ];
  const here = [
    counted(files, "file in the ledger", "files in the ledger"),
    counted(texts, "saved text"),
    counted(activities, "entry of the log", "entries of the log"),
  ];
  const left = remains.map(({ kind, name, reason }) => `left     ${kind} ${visibleLine(name)}: ${reason}\n`);
  return `erased   at the service: ${atService.join(", ")}\nerased   here: ${here.join(", ")}\n${left.join("")}`;
}
