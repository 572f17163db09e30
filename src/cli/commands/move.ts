import type { Command } from "commander";
import { databaseProblem } from "../../config/database.ts";
import { loadConfig } from "../../config/load.ts";
import type { Moved, MoveProgress } from "../../kb/store/move/move.ts";
import { KbsyncError } from "../../lib/failure.ts";
import {
  databaseAddress,
  identityOf,
  openDatabaseSource,
  openDatabaseTarget,
  type OwnService,
} from "../compose/store.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { counted, thousands } from "../output/progress.ts";
import { printJson } from "../state/ask.ts";
import { handLedgerOver } from "../state/ledger-owner.ts";
import { lockState } from "../state/pending-restore.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { uploadsFolder } from "../state/state-parts.ts";

interface MoveCommandOptions extends CommonOptions {
  readonly to?: string;
  readonly from?: string;
  readonly json?: boolean;
}

/** `kbsync move`: copies the knowledge base between the state folder and a database. */
export function addMove(program: Command, context: Context): void {
  program
    .command("move")
    .description(
      "copy the knowledge base from the state folder to an empty PostgreSQL database, or back, and compare both (stop kbsync first); run again, it continues where it was interrupted",
    )
    .option("--to <address>", "the database to copy to, such as postgres://user@host/database")
    .option("--from <address>", "the database to copy from, to the state folder")
    .option("--json", "print the result as JSON")
    .action(async (options: MoveCommandOptions) => move(context, options));
}

async function move(context: Context, options: MoveCommandOptions): Promise<void> {
  const { service, stateDir } = loadConfig(configRequest(context, options));
  const address = options.to ?? options.from;
  if (address === undefined || (options.to !== undefined && options.from !== undefined)) {
    throw usage("expected either --to or --from with the address of a database");
  }
  const problem = databaseProblem(address);
  if (problem !== undefined) throw usage(problem);
  if (!("embedded" in service))
    throw usage("the configuration names a hosted service, whose knowledge base is not here");
  const isTo = options.to !== undefined;
  const inDatabase: OwnService = { ...service, database: address };
  const url = databaseAddress(inDatabase, context.env) ?? address;
  // Loaded here, because no other command needs the code of both stores.
  const [{ moveBetween }, { openStoreSource, openStoreTarget }] = await Promise.all([
    import("../../kb/store/move/move.ts"),
    import("../state/embedded-store.ts"),
  ]);
  const state = makeStateFolder(stateDir);
  const lock = lockState(state.path);
  try {
    const running = { signal: context.signal, onProgress: progressOn(context) };
    const moved = await (isTo
      ? moveBetween(
          () => openStoreSource(state),
          () => openDatabaseTarget(url),
          running,
        )
      : moveBetween(
          () => openDatabaseSource(url),
          () => openStoreTarget(state),
          running,
        ));
    const database = identityOf(inDatabase);
    const hasLedger = isTo
      ? handLedgerOver(state.path, EMBEDDED, database)
      : handLedgerOver(state.path, database, EMBEDDED);
    if (options.json === true) printJson(context, moved);
    else context.stdout.write(movedText(moved, { isTo, hasLedger, uploads: uploadsFolder(state) }));
  } finally {
    if (context.stdout.isTTY) context.stdout.bar("");
    lock.release();
  }
}

/** The name by which a ledger knows the service whose store is in the state folder. */
const EMBEDDED = "embedded";

function usage(message: string): KbsyncError {
  return new KbsyncError(message, {
    code: "usage",
    hint: "`kbsync move --to postgres://user@host/database` copies to a database, `--from` copies back.",
  });
}

const STEPS: Readonly<Record<MoveProgress["step"], string>> = {
  copy: "copying",
  compare: "comparing both",
  texts: "comparing the texts of documents",
};

/** Shows the progress in a line of a terminal. */
function progressOn({ stdout }: Context): (progress: MoveProgress) => void {
  return ({ step, table, tables, records }) => {
    if (!stdout.isTTY) return;
    const part = step === "texts" ? "" : `, part ${table} of ${tables}`;
    stdout.bar(`${STEPS[step]}: ${thousands(records)}${part}`);
  };
}

/** The result for a person. */
function movedText(
  { from, to, wasResumed, records, documents }: Moved,
  {
    isTo,
    hasLedger,
    uploads,
  }: { readonly isTo: boolean; readonly hasLedger: boolean; readonly uploads: string },
): string {
  const lines = [
    `copied ${counted(records, "record")} of ${counted(documents, "document")}${wasResumed ? ", the last part in this run," : ""} from ${from} to ${to}`,
    "Counts and hashes of all records, and the text of every document, are the same in both.",
    `${from} is unchanged. Remove it when you no longer need it.`,
    isTo
      ? "Set service.database in the configuration to the address of the database, and start kbsync."
      : "Remove service.database from the configuration, and start kbsync.",
    `Uploaded files stay in ${uploads}. If the service will use another state folder, copy them there.`,
  ];
  if (hasLedger) lines.push("What was synced belongs to the copy from now on: nothing is sent again.");
  return `${lines.join("\n")}\n`;
}
