import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../lib/durable-file.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { stateUnusable } from "../../lib/folder-lock.ts";
import { shortageAt } from "../../lib/full-disk.ts";
import { closeToOthers, isOpenToOthers } from "../../lib/private-path.ts";
import { finishRestore } from "./pending-restore.ts";

/** The paths in a state folder. */
export interface StateFolder {
  readonly path: string;
  /** The embedded service's key, mode 0600. */
  readonly keyFile: string;
  /** The embedded service's database and uploads. */
  readonly serviceDir: string;
  /** The file with the address of the running embedded service. */
  readonly addressFile: string;
}

/** Returns the paths. Touches no file. */
export function stateFolder(path: string): StateFolder {
  return {
    path,
    keyFile: join(path, "pauthkey"),
    serviceDir: join(path, "service"),
    addressFile: join(path, "service.json"),
  };
}

/**
 * Creates the state folder for its owner alone, and completes an interrupted restore in it. Throws `state_unusable` or
 * `disk_full`.
 */
export function makeStateFolder(path: string): StateFolder {
  try {
    makeFolders(path);
  } catch (error) {
    if (shortageAt(path, error) !== undefined) throw stateUnusable(path, error);
    throw new KbsyncError(`cannot create the state folder ${path}: ${messageOf(error)}`, {
      code: "state_unusable",
      subject: path,
      hint: "Name another with --state-dir or the configuration's stateDir.",
      cause: error,
    });
  }
  closeFolder(path);
  finishRestore(path);
  return stateFolder(path);
}

/** The files that kbsync itself puts into a state folder, by prefix, and those of a disk's root. */
const OWN_NAMES =
  /^(?:pauthkey|ledger\.|daemon\.|control\.|service|trash|restore|before-restore-|plan-\d|instances|backups\.json|\.c|lost\+found)/;

/**
 * Closes an existing state folder to everyone but its owner. A folder that contains other files keeps its mode; only kbsync's
 * own files in it are closed. Throws `state_unusable` if every user may add files to it.
 */
function closeFolder(path: string): void {
  if (!isOpenToOthers(path)) return;
  usable(path, () => {
    if (readdirSync(path).every((name) => OWN_NAMES.test(name)) && closeToOthers(path)) return;
    for (const name of ["service", "trash", "restore"]) closeToOthers(join(path, name));
  });
  if ((statSync(path).mode & 0o002) === 0) return;
  throw new KbsyncError(`every user of this machine may write to the state folder ${path}`, {
    code: "state_unusable",
    subject: path,
    hint: `Name a folder of its own with --state-dir, or run: chmod go-rwx ${JSON.stringify(path)}`,
  });
}

/**
 * Creates a folder and those above it, one by one: `mkdir` with `recursive` never returns if a file system answers ENOENT for a
 * folder whose parent exists, as /proc does.
 */
function makeFolders(path: string): void {
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" || !statSync(path).isDirectory()) throw error;
  }
}

/** Creates the folder of the embedded service's data for its owner alone. Throws `state_unusable`. */
export function makeServiceFolder(state: StateFolder): void {
  usable(state.serviceDir, () => mkdirSync(state.serviceDir, { recursive: true, mode: 0o700 }));
}

/**
 * Reads a key file, which contains only the key; white space around it does not count. Undefined: there is no such file. Throws
 * `key_invalid`, also for a file that cannot be read.
 */
export function readKeyFile(path: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new KbsyncError(`cannot read the key file ${path}: ${messageOf(error)}`, {
      code: "key_invalid",
      subject: path,
      cause: error,
    });
  }
  return validKey(text, `${path} contains no key`, path);
}

/** The key in a text, without the space around it. Throws `key_invalid` with these words; the error never contains the text. */
export function validKey(text: string, words: string, subject: string): string {
  const key = text.trim();
  // A header value must be visible ASCII. Anything else comes from the wrong file, and sending it would leak its content.
  if (/^[\x21-\x7e]{1,4096}$/.test(key)) return key;
  throw new KbsyncError(`${words}: expected one line of visible ASCII characters, got ${flawOf(key)}`, {
    code: "key_invalid",
    subject,
    hint: "It must contain nothing but the key, without line breaks or other control characters.",
  });
}

function flawOf(key: string): string {
  if (key === "") return "nothing";
  if (/[\r\n]/.test(key)) return "several lines";
  // oxlint-disable-next-line no-control-regex -- the pattern matches control characters
  return /[\u0000-\u001f\u007f]/.test(key) ? "a control character" : "other characters, or too many";
}

/** The embedded service's key: the one in the state folder, or a new one from `generate`. Throws `state_unusable`. */
export function ensureKey(state: StateFolder, generate: () => string): string {
  const existing = readKeyFile(state.keyFile);
  if (existing !== undefined) {
    usable(state.keyFile, () => chmodSync(state.keyFile, 0o600));
    return existing;
  }
  const key = generate();
  writeStateFile(state.keyFile, `${key}\n`);
  return key;
}

/** Replaces the embedded service's key, mode 0600. Throws `state_unusable`. */
export function writeKeyFile(state: StateFolder, key: string): void {
  writeStateFile(state.keyFile, `${key}\n`);
}

const ServiceAddress = z.object({
  url: z.string(),
  pid: z.int(),
  /** Changes of the configuration that `kbsync serve` has not applied, each with the reason. */
  notApplied: z.array(z.string()).default([]),
});
export type ServiceAddress = z.infer<typeof ServiceAddress>;

/** Writes the address of this process's service for the other commands. */
export function writeServiceAddress(
  state: StateFolder,
  url: string,
  notApplied: readonly string[] = [],
): void {
  writeStateFile(state.addressFile, `${JSON.stringify({ url, pid: process.pid, notApplied })}\n`);
}

/** The address that the last service wrote. It may no longer run. */
export function readServiceAddress(state: StateFolder): ServiceAddress | undefined {
  try {
    return ServiceAddress.parse(JSON.parse(readFileSync(state.addressFile, "utf8")));
  } catch {
    return undefined; // none was written, or a crash truncated it: then no service is known
  }
}

/** Removes the address of this process's service. */
export function forgetServiceAddress(state: StateFolder): void {
  if (readServiceAddress(state)?.pid === process.pid) rmSync(state.addressFile, { force: true });
}

/** Replaces a small file of the state folder. Throws `state_unusable`. */
export function writeStateFile(path: string, text: string): void {
  usable(path, () => writeDurably(path, text));
}

/** Runs an action on a path of the state folder. Converts a failure to an expected one that names the path. */
function usable(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw stateUnusable(path, error);
  }
}
