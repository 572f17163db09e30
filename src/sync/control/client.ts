import { connect, type Socket } from "node:net";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { findSocket } from "./address.ts";
import { openLineSplitter } from "./lines.ts";
import {
  Answer,
  ANSWER_BYTES_MAX,
  ANSWERS,
  errorOf,
  Hello,
  PROTOCOL,
  type CommandName,
  type EventOf,
  type Request,
  type ResultOf,
} from "./protocol.ts";

export interface AskOptions<C extends CommandName> {
  /** Takes the request back. */
  readonly signal: AbortSignal;
  readonly onEvent?: (event: EventOf<C>) => void;
}

/** A daemon that lives says hello within this time; a stopped process (SIGSTOP) does not. */
const HELLO_MS = 5000;

/**
 * Asks the daemon that runs on a state folder. Undefined: none does. Throws what the daemon answers with as a
 * KbsyncError of the same code, `control_refused` for a socket that is another user's, `control_lost` when the daemon
 * ends without an answer, `control_silent`, `control_version`, and the signal's reason.
 */
export async function askDaemon<C extends CommandName>(
  stateDir: string,
  request: Request & { readonly command: C },
  { signal, onEvent }: AskOptions<C>,
): Promise<ResultOf<C> | undefined> {
  signal.throwIfAborted();
  const path = findSocket(stateDir);
  const socket = path === undefined ? undefined : await reach(path);
  if (socket === undefined) return undefined;
  const { command } = request;
  try {
    const result = await talk(socket, request, signal, (event) =>
      // The daemon is of this protocol's version, and the schema says that the event is one of this command.
      onEvent?.(ANSWERS[command].event.parse(event) as EventOf<C>),
    );
    return ANSWERS[command].result.parse(result) as ResultOf<C>; // as above
  } finally {
    socket.destroy();
  }
}

/** Undefined: there is no socket, or one that nobody listens at. */
function reach(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", (error) => {
      const code = codeOf(error) ?? "";
      if (["ENOENT", "ECONNREFUSED", "ENOTSOCK", "ENOTDIR"].includes(code)) resolve(undefined);
      else {
        reject(
          new KbsyncError(`cannot reach the daemon at ${path}: ${messageOf(error)}`, {
            code: "control_refused",
            subject: path,
            hint: "Only the user that runs the daemon may ask it.",
            cause: error,
          }),
        );
      }
    });
  });
}

function talk(
  socket: Socket,
  request: Request,
  signal: AbortSignal,
  onEvent: (event: unknown) => void,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const splitter = openLineSplitter(ANSWER_BYTES_MAX);
  let greeted = false;
  const silent = setTimeout(() => {
    reject(
      new KbsyncError(`the daemon did not answer within ${HELLO_MS} ms`, {
        code: "control_silent",
        retryable: true,
        hint: "Its process may be stopped or overloaded.",
      }),
    );
  }, HELLO_MS);
  const lost = (): void => {
    reject(new KbsyncError("the daemon ended before it answered", { code: "control_lost", retryable: true }));
  };
  const take = (line: string): void => {
    const message: unknown = JSON.parse(line);
    const hello = greeted ? undefined : Hello.safeParse(message).data?.hello;
    if (hello !== undefined) {
      greeted = true;
      clearTimeout(silent);
      if (hello.protocol === PROTOCOL) socket.write(`${JSON.stringify(request)}\n`);
      else reject(otherVersion(hello.version));
      return;
    }
    const answer = Answer.parse(message);
    if ("error" in answer) reject(errorOf(answer.error));
    else if ("result" in answer) resolve(answer.result);
    else onEvent(answer.event);
  };
  const onAbort = (): void => reject(signal.reason as Error); // what an AbortSignal is aborted with is an Error here
  signal.addEventListener("abort", onAbort, { once: true });
  socket.on("data", (bytes) => {
    try {
      const lines = splitter.push(bytes);
      if (lines === undefined) throw new Error("the answer is too long");
      for (const line of lines) take(line);
    } catch (error) {
      reject(
        new KbsyncError(`the daemon's answer is not understood: ${messageOf(error)}`, {
          code: "control_version",
          hint: "Restart the daemon with this version.",
          cause: error,
        }),
      );
    }
  });
  socket.on("close", lost);
  socket.on("error", lost);
  return promise.finally(() => {
    clearTimeout(silent);
    signal.removeEventListener("abort", onAbort);
  });
}

function otherVersion(version: string): KbsyncError {
  return new KbsyncError(`the running daemon is kbsync ${version}, which this one cannot talk to`, {
    code: "control_version",
    hint: "Restart the daemon with this version.",
  });
}
