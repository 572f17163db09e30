import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { parentPort } from "node:worker_threads";
import { messageOf } from "../failure.ts";

/** What the thread that has the child processes is asked for. */
export type ToHost =
  | {
      readonly kind: "start";
      readonly id: number;
      readonly command: string;
      readonly args: readonly string[];
    }
  | { readonly kind: "send"; readonly id: number; readonly message: object }
  | { readonly kind: "kill"; readonly id: number };

/** What it tells of a child. Nothing comes after `exit`. */
export type FromHost =
  | { readonly kind: "started"; readonly id: number; readonly pid: number }
  | { readonly kind: "message"; readonly id: number; readonly message: unknown }
  | {
      readonly kind: "exit";
      readonly id: number;
      readonly code: number | null;
      readonly signal: string | null;
      readonly stderr: string;
    }
  | { readonly kind: "error"; readonly id: number; readonly words: string };

/** Most characters of a child's error output that are kept. */
const STDERR_CHARS_MAX = 4000;

if (parentPort === null) throw new Error("host-worker.ts runs as a worker only");
const port = parentPort;
const children = new Map<number, ChildProcess>();
const post = (message: FromHost): void => port.postMessage(message);

port.on("message", (asked: ToHost) => {
  const { id } = asked;
  const fail = (error: unknown): void => post({ kind: "error", id, words: messageOf(error) });
  switch (asked.kind) {
    case "start":
      try {
        start(id, asked.command, asked.args, fail);
      } catch (error) {
        fail(error);
      }
      return;
    case "send":
      children.get(id)?.send(asked.message, (error) => {
        if (error !== null) fail(error);
      });
      return;
    case "kill":
      children.get(id)?.kill("SIGKILL");
      return;
  }
});

function start(id: number, command: string, args: readonly string[], fail: (error: unknown) => void): void {
  // An empty environment: a child reads hostile files and has no use for the program's keys.
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    serialization: "advanced",
    env: {},
  });
  children.set(id, child);
  const stderr = keepStderr(child);
  child.on("message", (message) => post({ kind: "message", id, message }));
  child.on("error", fail);
  child.on("exit", (code, signal) => {
    children.delete(id);
    post({ kind: "exit", id, code, signal, stderr: stderr() });
  });
  if (child.pid !== undefined) post({ kind: "started", id, pid: child.pid });
}

/** Keeps the beginning of what the child says before it dies. */
function keepStderr(child: ChildProcess): () => string {
  let text = "";
  const stream = child.stderr as Socket | null; // a pipe, as spawned above
  stream?.setEncoding("utf8");
  stream?.on("data", (piece: string) => {
    if (text.length < STDERR_CHARS_MAX) text += piece.slice(0, STDERR_CHARS_MAX - text.length);
  });
  return () => text;
}
