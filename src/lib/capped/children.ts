import { EventEmitter } from "node:events";
import { Worker } from "node:worker_threads";
import { siblingModule } from "../sibling.ts";
import type { FromHost, ToHost } from "./host-worker.ts";

interface ChildEvents {
  message: [message: unknown];
  /** `stderr`: the beginning of what it said there. */
  exit: [code: number | null, signal: string | null, stderr: string];
  /** It could not be started or spoken to. */
  error: [error: Error];
}

/** A child process of the host thread, with a channel for messages. */
export interface HostedChild extends EventEmitter<ChildEvents> {
  /** Undefined until it has started. */
  pid(): number | undefined;
  send(message: object): void;
  kill(): void;
  /** Whether it keeps this process alive. At first it does not. */
  hold(held: boolean): void;
}

/**
 * The thread that starts the children of this process and collects those that ended. Both block whoever does it: a fork
 * waits for the copy of the page tables and for the new program, milliseconds on a busy machine; and collecting a process
 * of many threads that was killed took the kernel up to 0.7 s there, spent waiting for entries of /proc that a thread of
 * lower priority held (bench/hostile-account.ts).
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
  const thread = new Worker(siblingModule(import.meta.url, "host-worker"), {
    name: "child processes",
    // Not those of this process: some of Node's flags are refused for a thread, as one for code that comes as a text.
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
        known.child.emit("error", new Error(message.words));
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
        // It ended by itself.
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
  // The thread ends with this process and kills nobody then; a child that is caught in a loop does not notice.
  process.on("exit", killAll);
  thread.on("error", end);
  thread.on("exit", (code) => end(new Error(`the thread of the child processes ended: exit code ${code}`)));
  return started;
}
