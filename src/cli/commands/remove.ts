import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { realPath } from "../../config/folders.ts";
import type { ResolvedSource } from "../../config/load.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { innermost } from "../../lib/path-below.ts";
import { countDocuments } from "../../sync/operate/commands.ts";
import { changeLedger, type OperatorLedger, readLedger } from "../../sync/operate/offline.ts";
import { readStatus } from "../../sync/operate/status.ts";
import { shellWord } from "../../lib/shell-word.ts";
import { unknownSource } from "../../sync/scan/disk/source-path.ts";
import { type Operator, openOperator } from "../state/ask.ts";
import { removeFolder } from "../state/configured-folders.ts";
import { reloadDaemon, runningDaemon } from "../state/reload-daemon.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";
import { counted } from "../../lib/counted.ts";
import { removedLine } from "./follow.ts";

interface RemoveOptions extends CommonOptions {
  readonly yes?: boolean;
  readonly keepDocuments?: boolean;
}

/** `kbsync remove DIR`: removes a folder from the configuration, and deletes its documents after a question. */
export function addRemove(program: Command, context: Context): void {
  program
    .command("remove")
    .description(
      "remove a folder from the configuration, and its documents from the knowledge base; its files are not touched",
    )
    .argument("<dir>", "a folder that is or was synced; it need not exist any more")
    .option("-y, --yes", "delete its documents without asking")
    .option("--keep-documents", "only stop syncing: its documents stay searchable")
    .action(async (dir: string, options: RemoveOptions) => remove(context, dir, options));
}

async function remove(context: Context, dir: string, options: RemoveOptions): Promise<void> {
  const operator = openOperator(context, options);
  const { file, sources, stateDir } = operator.config;
  const folder = resolve(context.cwd, dir);
  const status = (await runningDaemon(operator)) ?? readStatus(stateDir, 0);
  const left = status?.removed.find(({ path }) => path === folder);
  const active = status?.sources.find(({ path }) => path === folder);
  const index = sources.findIndex(({ absolutePath }) => absolutePath === folder);
  if (left === undefined && active === undefined && index === -1) {
    const configured = sources.map(({ absolutePath }) => absolutePath);
    const synced = [...(status?.sources ?? []), ...(status?.removed ?? [])].map(({ path }) => path);
    throw unknownSource(folder, [...new Set([...configured, ...synced])]);
  }
  const documents = (await readLedger(stateDir, async (ledger) => countDocuments(ledger, folder))) ?? 0;
  const others = sources.filter(({ absolutePath }) => absolutePath !== folder);
  const around = innermost(others, (each) => realPath(each.absolutePath), realPath(folder))?.item;
  const deletes = options.keepDocuments !== true && around === undefined;
  if (deletes && documents > 0 && options.yes !== true && !(await agrees(context, folder, documents))) return;
  if (index >= 0 && file !== undefined && removeFolder(file, folder, context)) {
    context.stdout.write(`removed from ${file}: ${folder}\n`);
  }
  const outcome = await removeFrom(operator, folder, deletes).catch((error: unknown) => {
    throw codeOf(error) === "control_silent" ? notDone(error, folder) : error;
  });
  context.stdout.write(around === undefined ? outcome : handedWords(around, documents));
}

/** Asks a person. Throws `usage` without a terminal. */
async function agrees(context: Context, folder: string, documents: number): Promise<boolean> {
  const what = `${counted(documents, "document")} of ${folder}`;
  if (!context.stdout.isTTY || !process.stdin.isTTY) {
    throw new KbsyncError(
      `this deletes ${what} from the knowledge base, and there is no terminal on which to ask`,
      {
        code: "usage",
        subject: folder,
        hint: `\`kbsync remove ${shellWord(folder)} --yes\` deletes them; --keep-documents only stops syncing.`,
      },
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const question = `Delete ${what} from the knowledge base? The files stay. [y/N] `;
    const answer = await terminal.question(question, { signal: context.signal });
    if (/^y(es)?$/i.test(answer.trim())) return true;
    context.stdout.write("nothing has changed\n");
    return false;
  } finally {
    terminal.close();
  }
}

/** Makes the daemon, or the ledger if none runs, forget the folder. Returns what becomes of its documents. */
async function removeFrom(operator: Operator, folder: string, deletes: boolean): Promise<string> {
  const isLive = await reloadDaemon(operator, (live) => !live.includes(folder));
  return isLive ? removeLive(operator, folder, deletes) : removeOffline(operator, folder, deletes);
}

/** The daemon was stopped after the configuration was changed. */
function notDone(error: unknown, folder: string): KbsyncError {
  return new KbsyncError(
    `${messageOf(error)}: it stops syncing ${folder} once it does, and leaves the documents`,
    {
      code: "control_silent",
      subject: folder,
      retryable: true,
      hint: `\`kbsync remove ${shellWord(folder)}\` deletes them then.`,
      cause: error,
    },
  );
}

/** The daemon no longer syncs the folder: it deletes what a person agreed to. */
async function removeLive(operator: Operator, folder: string, deletes: boolean): Promise<string> {
  const { removed } = await operator.need("status", {});
  const left = removed.find(({ path }) => path === folder);
  if (left === undefined) return "it has no documents\n";
  if (!deletes) return keptWords(folder, left.resources);
  await operator.need("approve", { folder, token: left.approval.token });
  return `the daemon deletes ${counted(left.resources, "document")} now\n`;
}

async function removeOffline(operator: Operator, folder: string, deletes: boolean): Promise<string> {
  const documents = await changeLedger(operator.config.stateDir, (ledger) =>
    removeSource(ledger, folder, deletes),
  );
  if (documents === undefined) return "it has no documents\n";
  if (!deletes) return keptWords(folder, documents);
  return `the next \`kbsync sync\` or \`kbsync up\` deletes ${counted(documents, "document")}\n`;
}

/** A folder inside another source is synced all the same. */
function handedWords({ absolutePath, ownerId }: ResolvedSource, documents: number): string {
  return `its files belong to ${absolutePath} now, and its ${counted(documents, "document")} to owner ${ownerId}\n`;
}

function keptWords(path: string, resources: number): string {
  return `${removedLine({ path, resources, approved: false })}\n`;
}

/**
 * Notes in a ledger that no daemon uses that a folder left the configuration, and, if `deletes`, that a person agreed to the
 * deletion of its documents, which the next pass carries out. Returns how many documents it has; undefined: the ledger does not
 * know the folder, or has nothing of it.
 */
async function removeSource(
  ledger: OperatorLedger,
  folder: string,
  deletes: boolean,
): Promise<number | undefined> {
  const { sources } = ledger;
  await ledger.write(() => {
    const others = sources.active().filter(({ path }) => path !== folder);
    sources.keepActive(others.map(({ id }) => id));
    const row = sources.removed().find(({ path }) => path === folder);
    if (row !== undefined && deletes) sources.approve(row.id);
  });
  return sources.removed().find(({ path }) => path === folder)?.resources;
}
