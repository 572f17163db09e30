import { randomUUID } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";
import { writeDurably } from "../../lib/durable-file.ts";
import { ledgerFailure } from "../ledger/database/open.ts";
import { writerTag } from "../plan/marker.ts";

/** Distinguishes this installation from every other one that may write to the same service. */
export interface Installation {
  /** Returns the writer tag of a source's folder. A folder that does not exist counts by its path. */
  writer(root: string): string;
}

/** Name of the file in the state folder that holds the instance's id. It outlives the ledger. */
const INSTANCE_FILE = "instance";
const MACHINE_FILES = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/** Opens the installation of a state folder, which exists. Throws `ledger_unusable` where its file cannot be read or written. */
export function openInstallation(stateDir: string, machine: string): Installation {
  const instance = instanceOf(join(stateDir, INSTANCE_FILE));
  const state = realPath(stateDir);
  return { writer: (root) => writerTag(instance, machine, state, realPath(root)) };
}

/** Returns the id of this machine: that of the operating system, or its name where there is none. */
export function machineId(): string {
  for (const file of MACHINE_FILES) {
    try {
      const id = readFileSync(file, "utf8").trim();
      if (id !== "") return id;
    } catch {
      // The next one may exist. A container often has neither.
    }
  }
  return hostname();
}

function instanceOf(file: string): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (id !== "") return id;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw ledgerFailure(error, file);
  }
  const id = randomUUID();
  try {
    writeDurably(file, `${id}\n`);
  } catch (error) {
    throw ledgerFailure(error, file);
  }
  return id;
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
