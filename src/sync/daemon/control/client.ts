import { statSync } from "node:fs";
import type { Client, Dispatcher } from "undici";
import { codeOf, KbsyncError, messageOf } from "../../../lib/failure.ts";
import { lockHolder } from "../../../lib/folder-lock.ts";
import { isStopped } from "../../../lib/process-alive.ts";
import {
  type AnswerOf,
  DAEMON_API,
  DAEMON_PREFIX,
  DaemonFailure,
  type DaemonOperation,
  type LineOf,
  type RequestOf,
} from "../../../wire/daemon.ts";
import { findSocket, LIFE_MS } from "./address.ts";
import { errorOf } from "./failure.ts";

export interface AskOptions<N extends DaemonOperation> {
  /** Cancels the request. */
  readonly signal: AbortSignal;
  readonly onLine?: (line: LineOf<N>) => void;
}

/** Time within which a live daemon or service accepts a request; a stopped process (SIGSTOP) does not. */
export const TAKEN_MS = 1500;
/** Silence that ends a request which was accepted. A slow disk or a busy machine holds up a daemon for a second or two. */
const HANGING_MS = 10_000;

/**
 * Sends a request to the daemon that runs on a state folder. Undefined: none runs. Throws the daemon's error as a KbsyncError
 * of the same code, `control_refused` for another user's socket, `control_lost` if the daemon ends without an answer,
 * `control_silent`, `control_version`, and the signal's reason.
 */
export async function askDaemon<N extends DaemonOperation>(
  stateDir: string,
  name: N,
  request: RequestOf<N>,
  { signal, onLine }: AskOptions<N>,
): Promise<AnswerOf<N> | undefined> {
  signal.throwIfAborted();
  const socketPath = findSocket(stateDir);
  if (socketPath === undefined || !mayExist(socketPath)) return undefined;
  // Loaded only here, because it takes a fifth of a short command.
  const { Client: UndiciClient } = await import("undici");
  const client = new UndiciClient("http://daemon", { socketPath, headersTimeout: 0, bodyTimeout: 0 });
  const silence = openSilence(() => lockHolder(stateDir, "daemon"));
  try {
    const sent = { signal: AbortSignal.any([signal, silence.signal]), onInfo: silence.onLife };
    const response = await send(client, name, request, sent);
    silence.onLife();
    // The table's schemas belong to this operation.
    return (await read(name, response, silence.onLife, (line) => onLine?.(line as LineOf<N>))) as AnswerOf<N>;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof KbsyncError) throw error;
    return noAnswer(error, socketPath);
  } finally {
    silence.stop();
    await client.destroy();
  }
}

/**
 * Aborts with `control_silent` when a daemon shows no life: for `TAKEN_MS` before its first sign or if its process is stopped,
 * otherwise for `HANGING_MS`. Counts its own ticks, so that a pause of this process does not count.
 */
function openSilence(holder: () => number | undefined): {
  readonly signal: AbortSignal;
  readonly onLife: () => void;
  readonly stop: () => void;
} {
  const silent = new AbortController();
  let silentMs = 0;
  let isTaken = false;
  const timer = setInterval(() => {
    silentMs += LIFE_MS;
    if (silentMs < TAKEN_MS) return;
    const pid = holder();
    if (!isTaken || silentMs >= HANGING_MS || (pid !== undefined && isStopped(pid)))
      silent.abort(silentProcess("daemon", pid));
  }, LIFE_MS);
  const onLife = (): void => {
    isTaken = true;
    silentMs = 0;
  };
  return { signal: silent.signal, onLife, stop: () => clearInterval(timer) };
}

/** Whether a socket may be at the path. In a folder of another user, connecting reports the reason. */
function mayExist(socketPath: string): boolean {
  try {
    return statSync(socketPath, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

async function send(
  client: Client,
  name: DaemonOperation,
  request: object,
  shared: { readonly signal: AbortSignal; readonly onInfo: () => void },
): Promise<Dispatcher.ResponseData> {
  const { method } = DAEMON_API[name];
  const path = `${DAEMON_PREFIX}/${name}`;
  return client.request(
    method === "GET"
      ? { ...shared, method, path, query: request }
      : {
          ...shared,
          method,
          path,
          headers: { "content-type": "application/json" },
          body: JSON.stringify(request),
        },
  );
}

/** `control_silent`: the daemon or the service of a state folder runs, and accepts no request. */
export function silentProcess(part: "daemon" | "service", pid: number | undefined): KbsyncError {
  const resume = pid === undefined ? "" : ` \`kill -CONT ${pid}\` resumes a stopped one.`;
  return new KbsyncError(`the ${part}${pid === undefined ? "" : ` (process ${pid})`} does not answer`, {
    code: "control_silent",
    retryable: true,
    hint: `Its process is stopped, hangs or is overloaded.${resume} Restart one that hangs.`,
  });
}

/** Reads an answer, as a whole or in lines. An empty line shows that the daemon is alive. */
async function read(
  name: DaemonOperation,
  { headers, body }: Dispatcher.ResponseData,
  onLife: () => void,
  onLine: (line: unknown) => void,
): Promise<unknown> {
  const operation = DAEMON_API[name];
  for await (const text of linesOf(body.setEncoding("utf8"))) {
    onLife();
    if (text === "") continue;
    const value = parsed(text);
    const failure = DaemonFailure.safeParse(value).data;
    // A daemon of the same version knows everything that this client sends.
    if (failure !== undefined && UNKNOWN.has(failure.error.code))
      throw otherVersion(headers, failure.message);
    if (failure !== undefined) throw errorOf(failure);
    const answer = operation.answer.safeParse(value);
    if (answer.success) return answer.data;
    const line = "line" in operation ? operation.line.safeParse(value) : answer;
    if (!line.success) throw otherVersion(headers, line.error);
    onLine(line.data);
  }
  throw lost();
}

/** Error codes for an operation, or a part of it, that the daemon does not know. */
const UNKNOWN: ReadonlySet<string> = new Set(["route_not_found", "invalid_field", "invalid_body"]);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no schema accepts it
  }
}

/** No process listens at the socket. */
const NO_LISTENER: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ENOTSOCK", "ENOTDIR"]);
/** The connection was closed. */
const ENDED: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/** Returns undefined if no process listens; throws any other failure. */
function noAnswer(error: unknown, socketPath: string): undefined {
  const code = codeOf(error) ?? "";
  if (NO_LISTENER.has(code)) return undefined;
  if (ENDED.has(code)) throw lost(error);
  if (error instanceof Error && error.name === "HTTPParserError") throw otherVersion({}, error);
  throw new KbsyncError(`cannot reach the daemon at ${socketPath}: ${messageOf(error)}`, {
    code: "control_refused",
    subject: socketPath,
    hint: "Only the user that runs the daemon may use it.",
    cause: error,
  });
}

function lost(cause?: unknown): KbsyncError {
  return new KbsyncError("the daemon ended before it answered", {
    code: "control_lost",
    retryable: true,
    cause,
  });
}

function otherVersion(headers: Dispatcher.ResponseData["headers"], cause: unknown): KbsyncError {
  const version = /^kbsync\/(.+)$/.exec(String(headers["server"]))?.[1] ?? "of another version";
  return new KbsyncError(`the running daemon is kbsync ${version}, which this one cannot talk to`, {
    code: "control_version",
    hint: "Restart the daemon with this version.",
    cause,
  });
}

/** Splits a stream of text into lines, without their ends; the last one may lack its end. */
async function* linesOf(stream: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream) {
    rest += text;
    // A long line is joined once, at its end.
    if (!text.includes("\n")) continue;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
