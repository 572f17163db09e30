import { EventEmitter } from "node:events";
import { Worker } from "node:worker_threads";
import { entryUrl } from "../package.ts";
import type { FromHost, ToHost } from "./host-worker.ts";

interface ChildEvents {
  message: [message: unknown];
  /** `stderr`: the beginning of its error output. */
  exit: [code: number | null, signal: string | null, stderr: string];
  /** It could not be started, or a message could not be sent. */
  error: [error: Error];
}

/** A child process of the host thread, with a message channel. */
export interface HostedChild extends EventEmitter<ChildEvents> {
  /** Undefined until it has started. */
  pid(): number | undefined;
  send(message: object): void;
  kill(): void;
  /** Sets whether the child keeps this process alive. Initially it does not. */
  hold(held: boolean): void;
}

/**
 * The thread that forks and reaps the children of this process, because both block the calling thread: a fork waits for
 * the copy of the page tables and for exec, milliseconds on a busy machine; reaping a killed process of many threads took
 * the kernel up to 0.7 s there, spent waiting for /proc entries that a thread of lower priority held
 * (bench/hostile-account.ts).
 */
interface Host {
  readonly thread: Worker;
  readonly children: Map<number, { readonly child: HostedChild; pid: number | undefined }>;
  /** Children that keep this process alive. */
  readonly held: Set<number>;
}

let host: Host | undefined;
let lastId = 0;

/** Starts a program in a child process with an empty environment. */
export function startChild(command: string, args: readonly string[]): HostedChild {
  const { thread, children, held } = (host ??= startHost());
  const id = (lastId += 1);
  const post = (message: ToHost): void => thread.postMessage(message, []);
  const child = Object.assign(new EventEmitter<ChildEvents>(), {
    pid: () => children.get(id)?.pid,
    send: (message: object) => post({ kind: "send", id, message }),
    kill: () => post({ kind: "kill", id }),
    hold: (isHeld: boolean) => {
      if (isHeld && children.has(id)) held.add(id);
      else held.delete(id);
      if (held.size > 0) thread.ref();
      else thread.unref();
    },
  });
  children.set(id, { child, pid: undefined });
  post({ kind: "start", id, command, args });
  return child;
}

function startHost(): Host {
  const thread = new Worker(entryUrl("lib/capped/host-worker"), {
    name: "child processes",
    // Not this process's flags: a worker refuses some of them, such as `--eval`.
    execArgv: [],
  });
  const started: Host = { thread, children: new Map(), held: new Set() };
  const { children } = started;
  thread.unref();
  thread.on("message", (message: FromHost) => {
    const known = children.get(message.id);
    if (known === undefined) return;
    switch (message.kind) {
      case "started":
        known.pid = message.pid;
        return;
      case "message":
        known.child.emit("message", message.message);
        return;
      case "exit":
        forget(message.id);
        known.child.emit("exit", message.code, message.signal, message.stderr);
        return;
      case "error":
        known.child.emit("error", new Error(message.message));
        return;
    }
  });
  const forget = (id: number): void => {
    children.get(id)?.child.hold(false);
    children.delete(id);
  };
  const killAll = (): void => {
    for (const { pid } of children.values()) {
      try {
        if (pid !== undefined) process.kill(pid, "SIGKILL");
      } catch {
        // The child has already ended.
      }
    }
  };
  const end = (cause: Error): void => {
    if (host === started) host = undefined;
    process.off("exit", killAll);
    killAll();
    for (const [id, { child }] of children) {
      forget(id);
      child.emit("error", cause);
    }
  };
  // The thread ends with this process without killing children, and a child in a busy loop does not notice.
  process.on("exit", killAll);
  thread.on("error", end);
  thread.on("exit", (code) => end(new Error(`the thread of the child processes ended: exit code ${code}`)));
  return started;
}
