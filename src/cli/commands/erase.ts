import type { Command } from "commander";
import { changeLedger } from "../../sync/operate/offline.ts";
import { erase as eraseHere } from "../../sync/operate/erase.ts";
import type { AnswerOf, RequestOf } from "../../wire/daemon.ts";
import { reachService } from "../compose/reached-service.ts";
import { nothingSynced, openOperator, type Operator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { counted } from "../../lib/counted.ts";
import { removePlanCopies } from "../state/plan-copies.ts";
import { makeStateFolder, type StateFolder } from "../state/state-folder.ts";

interface EraseOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync erase PATH`: removes documents without a trace. */
export function addErase(program: Command, context: Context): void {
  program
    .command("erase")
    .description(
      "remove the text of a deleted or excluded file everywhere: service, index, trash, ledger and log",
    )
    .argument("<path>", "the file, or a folder with all below it")
    .addOption(jsonOption())
    .action(async (path: string, options: EraseOptions) => run(context, path, options));
}

async function run(context: Context, path: string, options: EraseOptions): Promise<void> {
  const operator = openOperator(context, options);
  const state = makeStateFolder(operator.config.stateDir);
  const request = { path: operator.locate(path) };
  const answer =
    (await operator.ask("erase", request)) ?? (await eraseAlone(context, operator, request, state));
  // They may hold the text. One that cannot be removed is tried again at the next start.
  removePlanCopies(state, { own: false });
  if (options.json === true) printJson(context, answer);
  else context.stdout.write(`erased   ${counted(answer.documents, "document")}: ${fateWords(answer)}\n`);
}

function fateWords({ purged }: AnswerOf<"erase">): string {
  return purged
    ? "the text is gone from service, index, trash and log; backups keep theirs"
    : "the text is gone from trash and log; the service deleted its documents, and does not say that it removed their text";
}

/** Erases while no daemon runs. Starts the embedded service for this time unless it runs. */
async function eraseAlone(
  context: Context,
  operator: Operator,
  request: RequestOf<"erase">,
  state: StateFolder,
): Promise<AnswerOf<"erase">> {
  const { config } = operator;
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  const service = await reachService(config, state, context.env, log);
  try {
    const parts = { stateDir: config.stateDir, sources: operator.sources(), service };
    const done = await changeLedger(config.stateDir, (ledger) =>
      eraseHere({ ...parts, ledger }, request, context.signal),
    );
    if (done === undefined) throw nothingSynced(config.stateDir);
    return done;
  } finally {
    await service.close();
  }
}
