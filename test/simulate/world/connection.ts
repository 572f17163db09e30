import { Dispatcher } from "undici";
import type { Clock } from "../virtual/clock.ts";
import type { SimulatedProcess } from "../virtual/stage.ts";
import type { Operation } from "../history.ts";
import type { Answer, SentRequest } from "./service.ts";

/** What the network makes of a request: when it arrives, whether and when an answer comes back. */
export interface Passage {
  /** Nobody listens: the request never leaves. */
  readonly refused: boolean;
  /** Milliseconds to the service. */
  readonly outMs: number;
  /** Called on arrival; returns what the client sees of the answer, and when. */
  arrive(): Delivery;
}

export type Delivery =
  | {
      readonly kind: "answer";
      readonly afterMs: number;
      readonly answer: () => Answer;
    }
  | { readonly kind: "broken"; readonly afterMs: number };

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly process: SimulatedProcess;
  readonly timeoutMs: number;
  /** A request leaves. */
  readonly pass: (request: SentRequest) => Passage;
  /** Called when an answer has arrived, before the daemon knows. */
  readonly onDelivered: (request: SentRequest, answer: Answer) => void;
}

type Controller = Dispatcher.DispatchController;

/** Connections to one host of the simulated service, in undici's place. */
export class SimulatedConnection extends Dispatcher {
  readonly #options: ConnectionOptions;

  constructor(options: ConnectionOptions) {
    super();
    this.#options = options;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { clock, process, timeoutMs, pass, onDelivered } = this.#options;
    const begunMs = clock.nowMs();
    const open: OpenExchange = {
      fail: (error) => {
        open.fail = undefined;
        handler.onResponseError?.(controller, error);
      },
    };
    const controller = openController((reason) => open.fail?.(reason));
    handler.onRequestStart?.(controller, {});
    if (controller.aborted) return true;

    const leave = (body: Buffer): void => {
      // A process that died while it read the body sends nothing.
      if (open.fail === undefined || !process.alive) return;
      const request = { ...requestOf(options, body), begunMs, process: process.number };
      const passage = pass(request);
      const later = (ms: number, run: () => void): void => {
        clock.at(clock.nowMs() + ms, process, run);
      };
      if (passage.refused) {
        later(passage.outMs, breaking(open, "ECONNREFUSED"));
        return;
      }
      later(timeoutMs, breaking(open, "UND_ERR_HEADERS_TIMEOUT"));
      // What is on its way arrives, whether or not the process that sent it still lives.
      clock.at(clock.nowMs() + passage.outMs, { alive: true }, () => {
        const delivery = passage.arrive();
        later(delivery.afterMs, () => {
          if (open.fail === undefined) return;
          if (delivery.kind === "broken") {
            open.fail(broken("UND_ERR_SOCKET"));
            return;
          }
          const answer = delivery.answer();
          onDelivered(request, answer);
          open.fail = undefined;
          deliver(handler, controller, answer);
        });
      });
    };
    bodyOf(options.body).then(leave, (error: Error) => open.fail?.(error));
    return true;
  }

  override async close(): Promise<void> {
    await Promise.resolve();
  }

  override async destroy(): Promise<void> {
    await Promise.resolve();
  }
}

/** An exchange; it has no `fail` any more when it is over. */
interface OpenExchange {
  fail: ((error: Error) => void) | undefined;
}

/** Breaks an exchange off, if it is not over by then; what runs later holds on to nothing else of it. */
function breaking(open: OpenExchange, code: string): () => void {
  return () => open.fail?.(broken(code));
}

/** The events of an exchange, and whether it was aborted. */
function openController(onAbort: (reason: Error) => void): Controller {
  let reason: Error | null = null;
  return {
    get aborted() {
      return reason !== null;
    },
    get reason() {
      return reason;
    },
    paused: false,
    abort: (why: Error) => {
      if (reason !== null) return;
      reason = why;
      onAbort(why);
    },
    pause: () => undefined,
    resume: () => undefined,
  };
}

function deliver(handler: Dispatcher.DispatchHandler, controller: Controller, answer: Answer): void {
  handler.onResponseStart?.(controller, answer.status, { ...answer.headers }, "");
  handler.onResponseData?.(controller, Buffer.from(answer.text));
  handler.onResponseEnd?.(controller, {});
}

async function bodyOf(body: unknown): Promise<Buffer> {
  if (body === undefined || body === null) return Buffer.alloc(0);
  if (typeof body === "string" || body instanceof Uint8Array) return Buffer.from(body);
  const pieces: Buffer[] = [];
  for await (const piece of body as AsyncIterable<Buffer>) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

/** An address that is its own path, without reading it as a URL. */
const PLAIN_PATH = /^\/[\w/-]*$/;
const NO_QUERY = new URLSearchParams();

function requestOf(
  { method, path, headers }: Dispatcher.DispatchOptions,
  body: Buffer,
): Omit<SentRequest, "begunMs" | "process"> {
  const { pathname, searchParams } = PLAIN_PATH.test(path)
    ? { pathname: path, searchParams: NO_QUERY }
    : new URL(path, "http://simulated");
  const docId = /^\/api\/rag\/resource\/([^/]+)$/.exec(pathname)?.[1];
  return {
    operation: operationOf(method, pathname, docId),
    method,
    path: pathname,
    query: searchParams,
    docId,
    headers: headers as Record<string, string>,
    body,
  };
}

function operationOf(method: string, path: string, docId: string | undefined): Operation {
  const name = `${method} ${path}`;
  if (name === "POST /image/processing/upload") return "upload";
  if (name === "POST /api/rag/resource") return "create";
  if (name === "GET /api/rag/resource/by-collection") return "list";
  if (name === "GET /api/rag/collections") return "collections";
  if (name === "POST /rag/query") return "search";
  if (method === "GET" && /^\/[0-9a-f]{24}$/.test(path)) return "download";
  if (method === "GET" && docId !== undefined) return "read";
  if (method === "PUT" && docId !== undefined) return "update";
  if (method === "DELETE" && docId !== undefined) return "delete";
  return "other";
}

function broken(code: string): Error {
  return Object.assign(new Error(`the connection broke: ${code}`), { code });
}
