import type { MessagePort, Worker } from "node:worker_threads";
import { KbsyncError } from "./failure.ts";

/** The methods a worker answers: each takes one argument and returns one value, both structured-cloneable. */
export type Methods = Record<string, (argument: never) => unknown>;

interface Call {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}

/** In place of a call's id: a call came here that could not be read, and nobody knows which. */
const UNREADABLE = 0;

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { message: string; code?: string; subject?: string; hint?: string; retryable?: boolean };
}

/**
 * The caller's side of a worker: typed calls, and the worker's end as a failure of every open call. So is a message
 * that one side could write and the other cannot read (code `worker_message_lost`): it names no call any more, and its
 * own would wait for ever.
 */
export interface WorkerCalls<M extends Methods> {
  call<K extends keyof M & string>(
    method: K,
    argument: Parameters<M[K]>[0],
    transfer?: readonly ArrayBuffer[],
  ): Promise<Awaited<ReturnType<M[K]>>>;
  /** Number of calls without an answer yet. */
  pending(): number;
  /** Ends the worker; open calls fail with code `worker_gone`. */
  terminate(): Promise<void>;
}

/** Wraps a worker whose module calls `answerCalls`. Calls are answered in any order. */
export function callWorker<M extends Methods>(worker: Worker, name: string): WorkerCalls<M> {
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let nextId = 1;
  let gone: Error | undefined;

  const failOpen = (error: Error): void => {
    for (const { reject } of open.values()) reject(error);
    open.clear();
  };
  const fail = (cause: unknown): void => {
    gone ??= new KbsyncError(`the ${name} worker ended`, { code: "worker_gone", subject: name, cause });
    failOpen(gone);
  };
  const failLost = (cause?: unknown): void => {
    const facts = { code: "worker_message_lost", subject: name, cause };
    failOpen(new KbsyncError(`a message to or from the ${name} worker could not be read`, facts));
  };
  worker.on("error", fail);
  worker.on("exit", (code) => fail(new Error(`exit code ${code}`)));
  worker.on("messageerror", failLost);
  worker.on("message", (answer: Answer) => {
    if (answer.id === UNREADABLE) {
      failLost();
      return;
    }
    const caller = open.get(answer.id);
    if (caller === undefined) return;
    open.delete(answer.id);
    if (answer.error === undefined) caller.resolve(answer.value as never); // typed by the method's signature
    else caller.reject(new KbsyncError(answer.error.message, { code: "internal", ...answer.error }));
  });

  return {
    call: (method, argument, transfer) =>
      new Promise((resolve, reject) => {
        if (gone !== undefined) {
          reject(gone);
          return;
        }
        const id = nextId++;
        // Throws for what no message can carry; then nothing waits.
        worker.postMessage({ id, method, argument } satisfies Call, transfer);
        open.set(id, { resolve, reject });
      }),
    pending: () => open.size,
    terminate: async () => {
      await worker.terminate();
    },
  };
}

/** Answers the calls arriving on `port` with `methods`. An error crosses with its message, code, subject and hint. */
export function answerCalls(port: MessagePort, methods: Methods): void {
  port.on("messageerror", () => {
    port.postMessage({ id: UNREADABLE } satisfies Answer);
  });
  port.on("message", (call: Call) => {
    void (async () => {
      try {
        const method = methods[call.method];
        if (method === undefined) throw new TypeError(`no method ${call.method}`);
        const value = await method(call.argument as never); // typed by the caller's side
        port.postMessage({ id: call.id, value } satisfies Answer);
      } catch (error) {
        port.postMessage({ id: call.id, error: plain(error) } satisfies Answer);
      }
    })();
  });
}

function plain(error: unknown): NonNullable<Answer["error"]> {
  if (!(error instanceof Error)) return { message: String(error) };
  const facts: NonNullable<Answer["error"]> = { message: error.message };
  const source = error as Partial<KbsyncError>; // only own fields of the right type are copied below
  if (typeof source.code === "string") facts.code = source.code;
  if (typeof source.subject === "string") facts.subject = source.subject;
  if (typeof source.hint === "string") facts.hint = source.hint;
  if (typeof source.retryable === "boolean") facts.retryable = source.retryable;
  return facts;
}
