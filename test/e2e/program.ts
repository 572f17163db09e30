import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, FormData, request } from "undici";
import { z } from "zod";
import { ListAnswer, type ResourceRecord } from "../../src/wire/resource.ts";
import { SearchAnswer } from "../../src/wire/search.ts";
import { openAnswerCheck, typeOf } from "../kb/service/answer-check.ts";
import type { CheckedAnswer, DeclaredApi } from "../kb/service/answer-check.ts";
import { NODE_FLAGS } from "../node-flags.ts";

export const repositoryRoot = fileURLToPath(new URL("../..", import.meta.url));
const program = join(repositoryRoot, "dist", "main.js");

/** Longest wait for anything to become true, in milliseconds; far more than it takes, for slow machines. */
const WAIT_MS = 60_000;

/** Result of a command that ran to its end. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built program to its end. */
export async function kbsync(
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [...NODE_FLAGS, program, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...process.env, KBSYNC_LOG: "warn", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output };
}

/** A program that goes on running. */
export interface Started {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
}

/** A `kbsync up` that goes on running. */
export interface Running extends Started {
  readonly stateDir: string;
  readonly url: string;
  readonly key: string;
}

/** Starts the built program and lets it run. */
export function startProgram(args: readonly string[], cwd = tmpdir(), env: NodeJS.ProcessEnv = {}): Started {
  const child = spawn(process.execPath, [...NODE_FLAGS, program, ...args], {
    cwd,
    env: { ...process.env, KBSYNC_LOG: "info", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { child, output: collect(child) };
}

/** Starts `kbsync up` (or `serve`) and waits until its service answers. */
export async function startUp(args: readonly string[], stateDir: string, cwd = tmpdir()): Promise<Running> {
  const { child, output } = startProgram([...args, "--state-dir", stateDir], cwd);
  const { url } = await until(`the service of ${args.join(" ")}`, () => {
    if (child.exitCode !== null) {
      throw new Error(`ended with ${child.exitCode}: ${output.stdout}${output.stderr}`);
    }
    return serviceAddress(stateDir, child.pid);
  });
  return { child, stateDir, output, url, key: readFileSync(join(stateDir, "pauthkey"), "utf8").trim() };
}

/** Ends a running program; resolves with its exit code (null: by the signal). */
export async function stop(running: Started, signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
  if (running.child.exitCode !== null || running.child.signalCode !== null) return running.child.exitCode;
  const closed = once(running.child, "close") as Promise<[number | null]>;
  running.child.kill(signal);
  const [code] = await closed;
  return code;
}

const ServiceFile = z.object({ url: z.string(), pid: z.number() });

/** The address that the service of that process wrote down; undefined while it has not. */
function serviceAddress(stateDir: string, pid: number | undefined): { url: string } | undefined {
  try {
    const file = ServiceFile.parse(JSON.parse(readFileSync(join(stateDir, "service.json"), "utf8")));
    return file.pid === pid ? file : undefined;
  } catch {
    return undefined;
  }
}

const StatusOutput = z.object({
  sources: z.array(
    z.object({
      path: z.string(),
      ownerId: z.string(),
      collectionId: z.string().nullable(),
      files: z.number(),
      searchable: z.number(),
      waiting: z.number(),
      failed: z.number(),
      held: z.number(),
    }),
  ),
});
export type SourceLine = z.infer<typeof StatusOutput>["sources"][number];

/** What `kbsync status --json` says of the only source. */
export async function statusOf(folder: string, stateDir: string): Promise<SourceLine> {
  const ended = await kbsync(["status", "--json", "--state-dir", stateDir]);
  const source = StatusOutput.parse(JSON.parse(ended.stdout)).sources.find(({ path }) => path === folder);
  if (source === undefined) throw new Error(`no source ${folder} in ${ended.stdout}`);
  return source;
}

/** Waits until a running daemon has all files of a folder in agreement: so many, or any but none. */
export async function agreed(folder: string, stateDir: string, files?: number): Promise<SourceLine> {
  return until("agreement", async () => {
    // One program that waits takes less than many that are started to look.
    await kbsync(["wait", "--state-dir", stateDir, "--timeout", String(WAIT_MS / 1000)]);
    const now = await statusOf(folder, stateDir);
    const isCounted = files === undefined ? now.files > 0 : now.files === files;
    return isCounted && now.searchable === now.files && now.waiting === 0 && now;
  });
}

/** The live resources of a collection and owner, as the service lists them. */
export async function list(
  running: Running,
  collectionId: string,
  ownerId: string,
): Promise<ResourceRecord[]> {
  const query = new URLSearchParams({ collectionId, ownerId });
  const { json } = await send(running, "GET", `/api/rag/resource/by-collection?${query.toString()}`);
  return ListAnswer.parse(json).data.resources;
}

/** Searches a collection. */
export async function search(
  running: Running,
  body: { query: string; collection_id?: string; owner_id?: string; doc_id?: string; top_k?: number },
): Promise<SearchAnswer> {
  const { json } = await send(running, "POST", "/rag/query", { body: JSON.stringify(body) });
  return SearchAnswer.parse(json);
}

/** What a test sends besides method and path: JSON text or a form, and by default the program's own key. */
export interface SentToProgram {
  readonly body?: string | FormData;
  readonly key?: string;
}

/** The global dispatcher may be that of the undici inside Node.js, which never sends a form of this package. */
const dispatcher = new Agent();

/** Sends a request to a running program; its answer has to be as the program's own API document declares it. */
export async function send(
  { url, key }: Pick<Running, "url" | "key">,
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  { body, key: otherKey }: SentToProgram = {},
): Promise<{ readonly status: number; readonly json: unknown }> {
  const answer = await request(url + path, {
    dispatcher,
    method,
    headers: {
      pauthkey: otherKey ?? key,
      ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.body.text();
  const check = await checkOf(url);
  check({ method, path, status: answer.statusCode, contentType: typeOf(answer.headers), text });
  return { status: answer.statusCode, json: JSON.parse(text) };
}

const checks = new Map<string, Promise<(answer: CheckedAnswer) => void>>();

/** The check by the document that the program serves. */
function checkOf(url: string): Promise<(answer: CheckedAnswer) => void> {
  const fetched =
    checks.get(url) ??
    request(`${url}/openapi.json`).then(async ({ body }) =>
      openAnswerCheck((await body.json()) as DeclaredApi),
    );
  checks.set(url, fetched);
  return fetched;
}

/** Longest pause between two looks, in milliseconds. */
const PAUSE_MS_MAX = 500;

/**
 * Polls until `look` gives something else than undefined or false; fails naming what did not come. Pauses three times as
 * long as a check takes: a list of all documents, asked for without a pause, keeps a processor busy.
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  waitMs = WAIT_MS,
): Promise<T> {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const startMs = Date.now();
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`waited ${waitMs} ms in vain for ${what}`);
    await sleep(Math.min(PAUSE_MS_MAX, Math.max(20, 3 * (Date.now() - startMs))));
  }
}

/** A temporary folder; `remove` deletes it. */
export function temporaryFolder(name: string): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), `kbsync-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (data: Buffer) => (output.stdout += data.toString()));
  child.stderr?.on("data", (data: Buffer) => (output.stderr += data.toString()));
  return output;
}
