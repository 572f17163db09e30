import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { databaseName, hasPassword, withPassword } from "../../config/database.ts";
import type { Config } from "../../config/load.ts";
import type { DatabaseReport } from "../../kb/store/postgres/check.ts";
import type { Store } from "../../kb/store/store.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { credentialFile } from "../../system/credentials.ts";
import type { StoreFileOptions } from "../state/embedded-store.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { credentialOf } from "./models.ts";

/** The settings of a service of our own. */
export type OwnService = Exclude<Config["service"], { readonly apiUrl: unknown }>;

/** Key of the configuration that names the file with the password of the database. */
export const PASSWORD_FILE = "service.databasePasswordFile";
const PASSWORD_CHARS_MAX = 4096;

export interface StoreOptions extends StoreFileOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Waits for a database that does not answer until this signal, instead of failing. */
  readonly waitUntil?: AbortSignal | undefined;
  /** Called when the database does not answer, also while the store waits for it to be opened. */
  readonly onAway?: (failure: KbsyncError) => void;
  /** Called when it answers again. */
  readonly onBack?: () => void;
}

/**
 * Opens the store of a service: the configured database, or the file in the state folder. Throws as `openPostgresStore`,
 * `databaseAddress` and `openSqliteStore`.
 */
export async function openConfiguredStore(
  service: OwnService,
  state: StateFolder,
  { env, waitUntil, onAway, onBack, ...options }: StoreOptions,
): Promise<Store> {
  const address = databaseAddress(service, env);
  if (address === undefined) {
    const { openStore } = await import("../state/embedded-store.ts");
    return openStore(state, options);
  }
  const { openPostgresStore } = await import("../../kb/store/postgres/open.ts");
  // Each attempt to open the store opens a database of its own, which does not know that the one before did not answer either.
  let isAway = false;
  const listener = {
    onAway: (failure: KbsyncError): void => {
      if (!isAway) onAway?.(failure);
      isAway = true;
    },
    onBack: (): void => {
      if (isAway) onBack?.();
      isAway = false;
    },
  };
  const store = await whenItAnswers(() => openPostgresStore(address, listener), waitUntil);
  listener.onBack();
  return store;
}

/** Checks the configured database; undefined: none is configured. Throws as `checkPostgres` and `databaseAddress`. */
export async function checkDatabase(
  service: OwnService,
  env: NodeJS.ProcessEnv,
): Promise<DatabaseReport | undefined> {
  const address = databaseAddress(service, env);
  if (address === undefined) return undefined;
  const { checkPostgres } = await import("../../kb/store/postgres/check.ts");
  return checkPostgres(address);
}

/** Pause between attempts: short enough that a service starts soon after its database. */
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 5000;

async function whenItAnswers<T>(open: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await open();
    } catch (error) {
      if (signal === undefined || !(error instanceof KbsyncError) || error.code !== "store_busy") throw error;
    }
    await sleep(Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** tries), undefined, { signal });
  }
}

/**
 * Returns the address of the configured database with its password; undefined: none is configured. The password is the one in
 * KBSYNC_DATABASE, else that of the service manager's credential, else that of the configured file. Throws `key_invalid`.
 */
export function databaseAddress(
  { database, databasePasswordFile: configured }: OwnService,
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (database === undefined || hasPassword(database)) return database;
  const file = credentialFile(env, credentialOf(PASSWORD_FILE)) ?? configured;
  return file === undefined ? database : withPassword(database, passwordIn(file));
}

/** Reads a password. It may contain any characters but line breaks; a line break at the end does not belong to it. */
function passwordIn(file: string): string {
  const failure = (words: string, cause?: unknown): KbsyncError =>
    new KbsyncError(words, {
      code: "key_invalid",
      subject: file,
      hint: `Write the password of the database alone into it, or change ${PASSWORD_FILE}.`,
      cause,
    });
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw failure(`there is no password file ${file}`);
    throw failure(`cannot read the password file ${file}: ${messageOf(error)}`, error);
  }
  const password = text.replace(/\r?\n$/, "");
  if (password !== "" && password.length <= PASSWORD_CHARS_MAX && !/[\r\n\0]/.test(password)) return password;
  throw failure(`${file} contains no password: expected one line of up to ${PASSWORD_CHARS_MAX} characters`);
}

/**
 * Returns the name by which a ledger knows the service of this program, the same on every port. The host of a database may change, for example when a standby
 * takes over.
 */
export function identityOf({ database }: OwnService): string {
  return database === undefined ? "embedded" : `database ${databaseName(database)}`;
}
