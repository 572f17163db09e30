import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { controlPlaces, fitsSocket, socketInState, socketOutside, type FreshSocket } from "./address.ts";
import { openLineSplitter } from "./lines.ts";
import { failureOf, PROTOCOL, Request, REQUEST_BYTES_MAX } from "./protocol.ts";

/** Answers a request: events as they come, then the result. Ends when the signal aborts. Throws what the client is to be told. */
export type ControlHandler = (
  request: Request,
  how: {
    readonly signal: AbortSignal;
    readonly emit: (event: unknown) => void;
    /** Resolves when there is room for more events, or nobody there any more. For who has many to tell at once. */
    readonly drained: () => Promise<void>;
  },
) => Promise<unknown>;

/** An open control socket. */
export interface Control {
  /** Where it lies. */
  readonly path: string;
  /** Lets nobody in any more, tells those inside that the daemon stops, and removes the socket. May be called again. */
  close(): Promise<void>;
}

export interface ControlOptions {
  readonly stateDir: string;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly handle: ControlHandler;
  /** Told when the socket does not lie in the state folder. */
  readonly onElsewhere: (path: string, reason: string) => void;
}

/** Clients at a time: people and their scripts. One more is told so. */
const CLIENTS_MAX = 32;
/** A client says what it wants within this time. */
const REQUEST_MS = 5000;
/** An answer waits for its reader up to this size; one who follows the log and never reads is let go. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;
/** How long a client may take to read the last line when the daemon stops. */
const CLOSE_MS = 1000;

/**
 * Opens the control socket of a state folder, whose lock the caller holds. Throws where no socket can be made, neither
 * in the state folder nor outside.
 */
export async function openControl(options: ControlOptions): Promise<Control> {
  const stopping = new AbortController();
  const clients = new Set<Socket>();
  const server = createServer((socket) => {
    if (clients.size >= CLIENTS_MAX) {
      const busy = new KbsyncError(`the daemon has ${CLIENTS_MAX} clients already`, {
        code: "control_busy",
        retryable: true,
      });
      socket.on("error", () => undefined);
      socket.end(lineOf({ error: failureOf(busy) }));
      return;
    }
    clients.add(socket);
    socket.on("close", () => clients.delete(socket));
    serve(socket, options, stopping.signal);
  });
  const fresh = await listen(server, options);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    fresh.remove();
    stopping.abort(new KbsyncError("the daemon is stopping", { code: "daemon_stopping", retryable: true }));
    server.close();
    const cut = setTimeout(() => {
      for (const socket of clients) socket.destroy();
    }, CLOSE_MS);
    await Promise.all([...clients].map(closed));
    clearTimeout(cut);
  };
  return {
    path: fresh.published,
    close: async () => {
      closing ??= close();
      await closing;
    },
  };
}

/** Resolves when a client's socket is closed, in whatever way: one that went away first fails before it closes. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
}

/** Listens in the state folder, or outside where that cannot be. */
async function listen(
  server: Server,
  { stateDir, env, onElsewhere }: ControlOptions,
): Promise<FreshSocket & { readonly published: string }> {
  const { socket } = controlPlaces(stateDir);
  let reason = `its path would be too long for a socket: ${socket}`;
  if (fitsSocket(socket)) {
    try {
      const fresh = await bind(server, socketInState(stateDir));
      return { ...fresh, published: socket };
    } catch (error) {
      reason = messageOf(error); // Some file systems hold no sockets.
    }
  }
  const fresh = await bind(server, socketOutside(stateDir, env));
  onElsewhere(fresh.path, reason);
  return { ...fresh, published: fresh.path };
}

async function bind(server: Server, fresh: FreshSocket): Promise<FreshSocket> {
  try {
    server.listen(fresh.path);
    await once(server, "listening");
    fresh.publish();
    // Nobody's clients are worth a dead daemon.
    server.on("error", () => undefined);
    return fresh;
  } catch (error) {
    server.close();
    fresh.remove();
    throw error;
  }
}

/** One client: hello, its request, the answer. */
function serve(socket: Socket, options: ControlOptions, stopping: AbortSignal): void {
  const gone = new AbortController();
  const splitter = openLineSplitter(REQUEST_BYTES_MAX);
  let asked = false;

  const write = (message: object): void => {
    if (!socket.writable) return;
    socket.write(lineOf(message));
    if (socket.writableLength > UNREAD_BYTES_MAX) socket.destroy();
  };
  const drained = (): Promise<void> =>
    new Promise((resolve) => {
      if (socket.destroyed || !socket.writableNeedDrain) {
        resolve();
        return;
      }
      const done = (): void => {
        socket.off("drain", done);
        socket.off("close", done);
        resolve();
      };
      socket.on("drain", done);
      socket.on("close", done);
    });
  const end = (message: object): void => {
    clearTimeout(slow);
    if (socket.writable) socket.end(lineOf(message));
  };
  const refuse = (message: string): void => {
    asked = true;
    end({ error: failureOf(new KbsyncError(message, { code: "control_request" })) });
  };
  const answer = async (line: string): Promise<void> => {
    const request = Request.safeParse(parseJson(line));
    if (!request.success) {
      refuse("the daemon does not understand the request; is it another version of kbsync?");
      return;
    }
    const signal = AbortSignal.any([gone.signal, stopping]);
    try {
      const emit = (event: unknown): void => write({ event });
      const result = await options.handle(request.data, { signal, emit, drained });
      // Whether it came to its end or was broken off by the stop, it cannot tell by itself.
      stopping.throwIfAborted();
      end({ result });
    } catch (error) {
      end({ error: failureOf(stopping.aborted ? stopping.reason : error) });
    }
  };
  const slow = setTimeout(() => refuse(`no request came within ${REQUEST_MS} ms`), REQUEST_MS);
  slow.unref();

  socket.on("data", (bytes) => {
    if (asked) return;
    const lines = splitter.push(bytes);
    if (lines === undefined) {
      refuse(`the request is longer than ${REQUEST_BYTES_MAX} bytes`);
      return;
    }
    const [line] = lines;
    if (line === undefined) return;
    asked = true;
    clearTimeout(slow);
    void answer(line);
  });
  // A client that ends its side is gone: none has reason to.
  socket.on("end", () => gone.abort());
  socket.on("close", () => {
    clearTimeout(slow);
    gone.abort();
  });
  socket.on("error", () => socket.destroy());
  write({ hello: { protocol: PROTOCOL, version: options.version, pid: process.pid } });
}

function lineOf(message: object): string {
  return `${JSON.stringify(message)}\n`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
