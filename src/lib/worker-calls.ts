import type { MessagePort, Worker } from "node:worker_threads";
import { KbsyncError } from "./failure.ts";

/** The methods of a worker. Each takes one argument and returns one value, both structured-cloneable. */
export type Methods = Record<string, (argument: never) => unknown>;

interface Call {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}

/** Replaces the id when the worker received an unreadable message and cannot name the call. */
const UNREADABLE = 0;

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { message: string; code?: string; subject?: string; hint?: string; retryable?: boolean };
}

/**
 * The caller's side of a worker, with typed calls. All open calls fail when the worker ends (`worker_gone`), and when a
 * message arrives unreadable (`worker_message_lost`): it names no call, whose caller would wait for ever.
 */
export interface WorkerCalls<M extends Methods> {
  call<K extends keyof M & string>(
    method: K,
    argument: Parameters<M[K]>[0],
    transfer?: readonly ArrayBuffer[],
  ): Promise<Awaited<ReturnType<M[K]>>>;
  /** Number of calls in flight. */
  pending(): number;
  /** Terminates the worker; open calls fail with `worker_gone`. */
  terminate(): Promise<void>;
}

/** Wraps a worker whose module calls `answerCalls`. Calls may finish in any order. */
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
        // Throws for a value that cannot be cloned; then no call is open.
        worker.postMessage({ id, method, argument } satisfies Call, transfer);
        open.set(id, { resolve, reject });
      }),
    pending: () => open.size,
    terminate: async () => {
      await worker.terminate();
    },
  };
}

/** Answers the calls on `port` with `methods`. An error crosses with its message, code, subject, hint and retryability. */
export function answerCalls(port: MessagePort, methods: Methods): void {
  port.on("messageerror", () => {
    port.postMessage({ id: UNREADABLE } satisfies Answer);
  });
  const answer = async (call: Call): Promise<void> => {
    try {
      const method = methods[call.method];
      if (method === undefined) throw new TypeError(`no method ${call.method}`);
      const value = await method(call.argument as never); // typed by the caller's side
      port.postMessage({ id: call.id, value } satisfies Answer);
    } catch (error) {
      port.postMessage({ id: call.id, error: plain(error) } satisfies Answer);
    }
  };
  port.on("message", (call: Call) => {
    // Node.js hands out messages for as long as more arrive. Calls that let others run by `setImmediate` would wait for ever.
    setImmediate(() => void answer(call));
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
