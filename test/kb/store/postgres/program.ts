import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { vi } from "vitest";
import { z } from "zod";
import { NODE_FLAGS } from "../../../node-flags.ts";

/** Longest wait for a program, in milliseconds; far more than it takes, for slow machines. */
export const WAIT_MS = 60_000;

/** The built program, which starts faster than its sources. */
export const main = fileURLToPath(new URL("../../../../dist/main.js", import.meta.url));

/** The output of a command that ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A service that runs in a process of its own. */
export interface RunningService {
  readonly child: ChildProcess;
  readonly url: string;
  readonly key: string;
  log(this: void): string;
  /** Sends a request with the key; returns status, headers and body. */
  ask(
    this: void,
    method: "GET" | "POST" | "PUT",
    path: string,
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
  stop(this: void, signal?: NodeJS.Signals): Promise<void>;
}

/** An answer of a service. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: unknown;
}

/** A configuration that names a database, with a state folder and a folder of documents. */
export interface Site {
  /** The folder of documents. */
  readonly docs: string;
  readonly stateDir: string;
  /** Runs the program to its end with this configuration. */
  run(this: void, ...args: readonly string[]): Promise<Ended>;
  /** Starts `kbsync serve` or `kbsync up`, and waits until it answers. */
  start(this: void, command: "serve" | "up"): Promise<RunningService>;
  /** Starts it without waiting. */
  launch(this: void, command: "serve" | "up"): { readonly child: ChildProcess; log(this: void): string };
  remove(this: void): void;
}

/** Makes a site. */
export function newSite(database: string): Site {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-site-"));
  const docs = join(folder, "docs");
  const stateDir = join(folder, "state");
  const config = join(folder, "kbsync.config.json");
  mkdirSync(docs);
  writeFileSync(
    config,
    JSON.stringify({
      service: { port: 0, database },
      stateDir,
      sources: [{ path: docs, ownerId: "tests" }],
    }),
  );
  const started: ChildProcess[] = [];
  const begin = (args: readonly string[], level: string) => {
    const child = spawn(process.execPath, [...NODE_FLAGS, main, ...args, "--config", config], {
      cwd: folder,
      env: { ...process.env, KBSYNC_LOG: level, XDG_RUNTIME_DIR: folder },
      stdio: ["ignore", "pipe", "pipe"],
    });
    started.push(child);
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (data: Buffer) => (output.stdout += data.toString()));
    child.stderr.on("data", (data: Buffer) => (output.stderr += data.toString()));
    return { child, output };
  };
  const launch: Site["launch"] = (command) => {
    const { child, output } = begin([command], "debug");
    return { child, log: () => output.stdout + output.stderr };
  };
  return {
    docs,
    stateDir,
    launch,
    run: async (...args) => {
      const { child, output } = begin(args, "warn");
      await once(child, "close");
      return { code: child.exitCode, ...output };
    },
    start: async (command) => running(launch(command), stateDir),
    remove: () => {
      // A test that failed may have left some.
      for (const child of started) child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const Address = z.object({ url: z.string(), pid: z.number() });

/** Waits until a launched program answers. */
export async function running(
  { child, log }: ReturnType<Site["launch"]>,
  stateDir: string,
): Promise<RunningService> {
  const url = await vi.waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${log()}`);
      const found = Address.parse(JSON.parse(readFileSync(join(stateDir, "service.json"), "utf8")));
      if (found.pid !== child.pid) throw new Error(`the address is not its own: ${log()}`);
      return found.url;
    },
    { timeout: WAIT_MS, interval: 50 },
  );
  const key = readFileSync(join(stateDir, "pauthkey"), "utf8").trim();
  return {
    child,
    url,
    key,
    log,
    ask: async (method, path, body, headers = {}) => {
      const answer = await request(`${url}${path}`, {
        method,
        headers: { pauthkey: key, ...headers, ...(body && { "content-type": "application/json" }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      return {
        status: answer.statusCode,
        retryAfter: answer.headers["retry-after"]?.toString(),
        body: await answer.body.json(),
      };
    },
    stop: async (signal = "SIGTERM") => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, "close");
    },
  };
}
