import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { NODE_FLAGS } from "../../node-flags.ts";
import type { Script } from "../../../src/kb/store/postgres/database/schema.ts";

const PROGRAM = fileURLToPath(new URL("./process-main.ts", import.meta.url));

/** A service that runs in a process of its own, which a test may kill or stop. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly url: string;
}

/** What the process runs. */
export interface ProcessOptions {
  readonly stateDir: string;
  /** A key of all scopes of the account `local`. */
  readonly key: string;
  /** Address of the database; undefined: the store is a file in the state folder. */
  readonly database?: string;
  /** Scripts of the database that a later version of the program has after those of this one. */
  readonly laterScripts?: readonly Script[];
  readonly languageModel?: { readonly baseUrl: string; readonly model: string; readonly apiKey: string };
  /** Whether an embedder of the tests replaces the model. */
  readonly isHashed?: boolean;
}

/** Starts a service, and waits until it answers. `detached`: in a process group of its own. */
export async function startProcess(
  options: ProcessOptions,
  spawning?: { readonly detached?: boolean; readonly stdio?: "ignore" },
): Promise<ServiceProcess> {
  const child = launchProcess(options, spawning);
  if (child.stdout === null) throw new Error("the service has no output to read");
  const ended = once(child, "exit").then(() => {
    throw new Error("the service ended before it answered");
  });
  const line = once(createInterface(child.stdout), "line"); // it prints nothing else
  const [url] = (await Promise.race([line, ended])) as [string];
  ended.catch(() => undefined);
  return { child, url };
}

/** Starts a service without waiting. */
export function launchProcess(
  options: ProcessOptions,
  spawning?: { readonly detached?: boolean; readonly stdio?: "ignore" },
): ChildProcess {
  return spawn(process.execPath, [...NODE_FLAGS, PROGRAM, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
    ...spawning,
  });
}

/** Kills a service, and waits until it is gone. */
export async function killProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
