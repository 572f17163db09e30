import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { PORT_DEFAULT } from "../../config/schema/service.ts";
import type { Wishes } from "../../config/template.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";
import { visibleLine } from "../output/visible.ts";
import { type Ask, askTier, askUntil } from "./tier-question.ts";

/** Folders that are asked for; more are added in the file. */
const FOLDERS_MAX = 20;

/** Asks a person for what the flags left open. Throws as `onTerminal` does; nothing is written then. */
export async function interview(
  given: Wishes,
  context: Pick<Context, "cwd" | "invocation" | "signal" | "stdout">,
): Promise<Wishes> {
  return onTerminal(context, (ask, say) => askAll(given, ask, say, context.cwd));
}

/**
 * Runs questions on the terminal. Throws `usage` where standard input ends, and the signal's reason at Ctrl-C.
 */
export async function onTerminal<T>(
  context: Pick<Context, "invocation" | "signal" | "stdout">,
  run: (ask: Ask, say: (words: string) => void) => Promise<T>,
): Promise<T> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const ended = Promise.withResolvers<never>();
  // Nothing needs to wait for it.
  ended.promise.catch(() => undefined);
  terminal.on("close", () =>
    ended.reject(
      context.signal.aborted
        ? context.signal.reason
        : new KbsyncError("standard input ended before the last question", { code: "usage" }),
    ),
  );
  // The terminal takes Ctrl-C for itself while a question is open.
  terminal.on("SIGINT", () => void process.kill(process.pid, "SIGINT"));
  context.signal.addEventListener("abort", () => terminal.close(), { once: true });
  // The answer to a question ends its line; Ctrl-C does not.
  const endLine = (): void => context.stdout.write("\n");
  const ask: Ask = async (question) => {
    context.signal.addEventListener("abort", endLine, { once: true });
    try {
      return await Promise.race([terminal.question(question), ended.promise]);
    } finally {
      context.signal.removeEventListener("abort", endLine);
    }
  };
  try {
    return await run(ask, (words) => context.stdout.write(`  ${words}\n`));
  } finally {
    terminal.close();
  }
}

/**
 * Asks the questions in order; an empty answer selects the value in brackets. `say` prints choices and the problems of an
 * answer.
 */
export async function askAll(
  given: Wishes,
  ask: Ask,
  say: (words: string) => void,
  cwd: string,
): Promise<Wishes> {
  const folders = await askFolders(ask, say, cwd);
  const collection = await askTier(ask, say, given.collection);
  const isHere = await askUntil(
    ask,
    say,
    "Is the knowledge base on this machine, or hosted elsewhere? here, hosted [here] ",
    (answer) => ({ "": true, here: true, hosted: false })[answer.toLowerCase()],
    "expected here or hosted",
  );
  const service = isHere ? await askPort(given, ask, say) : await askHosted(ask, say, cwd);
  return { ...given, folders, collection, service };
}

async function askFolders(ask: Ask, complain: (words: string) => void, cwd: string): Promise<string[]> {
  const folders: string[] = [];
  while (folders.length < FOLDERS_MAX) {
    const isFirst = folders.length === 0;
    const answer = (
      await ask(
        isFirst
          ? `Which folder should kbsync sync? [${visibleLine(cwd)}] `
          : "Another folder? (Enter: no more) ",
      )
    ).trim();
    if (answer === "" && !isFirst) break;
    const folder = absolute(answer, cwd);
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
      complain(`there is no folder ${folder}`);
    else if (folders.includes(folder)) complain(`${folder} is on the list already`);
    else folders.push(folder);
  }
  return folders;
}

async function askPort(
  given: Wishes,
  ask: Ask,
  complain: (words: string) => void,
): Promise<Wishes["service"]> {
  const byDefault = "embedded" in given.service ? given.service.port : undefined;
  const port = await askUntil(
    ask,
    complain,
    `Which port of 127.0.0.1 should it listen on? [${byDefault ?? PORT_DEFAULT}] `,
    (answer) => (answer === "" ? "default" : portOf(answer)),
    "expected a whole number from 0 to 65535",
  );
  return { embedded: true, port: port === "default" ? byDefault : port };
}

async function askHosted(
  ask: Ask,
  complain: (words: string) => void,
  cwd: string,
): Promise<Wishes["service"]> {
  const address = (question: string, byDefault?: string): Promise<string> =>
    askUntil(
      ask,
      complain,
      byDefault === undefined ? `${question} ` : `${question} [${byDefault}] `,
      (answer) => addressOf(answer || (byDefault ?? "")),
      "expected an http or https address",
    );
  const apiUrl = await address("What is the main address of the service?");
  const dbUrl = await address("Which of its addresses stores resources?", apiUrl);
  const resourcesUrl = await address("Which of its addresses serves uploaded files?", apiUrl);
  const file = (await ask("Which file contains the key? (Enter: KBSYNC_PAUTHKEY contains it) ")).trim();
  return { apiUrl, dbUrl, resourcesUrl, pauthkeyFile: file === "" ? undefined : absolute(file, cwd) };
}

function portOf(text: string): number | undefined {
  const port = Number(text);
  return /^\d{1,5}$/.test(text) && port <= 65_535 ? port : undefined;
}

function addressOf(text: string): string | undefined {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "http:" || url.protocol === "https:")
    ? text.replace(/\/+$/, "")
    : undefined;
}

/** Resolves a typed path as a shell would. */
function absolute(path: string, cwd: string): string {
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  return resolve(cwd, path);
}
