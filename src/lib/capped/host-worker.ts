import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { parentPort } from "node:worker_threads";
import { messageOf } from "../failure.ts";

/** Requests to the host thread. */
export type ToHost =
  | {
      readonly kind: "start";
      readonly id: number;
      readonly command: string;
      readonly args: readonly string[];
    }
  | { readonly kind: "send"; readonly id: number; readonly message: object }
  | { readonly kind: "kill"; readonly id: number };

/** Events of a child. `exit` is the last one. */
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
  | { readonly kind: "error"; readonly id: number; readonly message: string };

/** Longest part of a child's error output that is captured. */
const STDERR_CHARS_MAX = 4000;

if (parentPort === null) throw new Error("host-worker.ts runs as a worker only");
const port = parentPort;
const children = new Map<number, ChildProcess>();
const post = (message: FromHost): void => port.postMessage(message);

port.on("message", (request: ToHost) => {
  const { id } = request;
  const fail = (error: unknown): void => post({ kind: "error", id, message: messageOf(error) });
  switch (request.kind) {
    case "start":
      try {
        start(id, request.command, request.args, fail);
      } catch (error) {
        fail(error);
      }
      return;
    case "send":
      children.get(id)?.send(request.message, (error) => {
        if (error !== null) fail(error);
      });
      return;
    case "kill":
      children.get(id)?.kill("SIGKILL");
      return;
  }
});

function start(id: number, command: string, args: readonly string[], fail: (error: unknown) => void): void {
  // An empty environment: a child parses hostile files and must not see the program's keys.
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    serialization: "advanced",
    env: {},
    // A process group of its own. Otherwise Ctrl-C in a terminal ends a child that is still starting, and its parent may
    // notice that before its own signal: it would count a failure against a document that a stop interrupted.
    detached: true,
  });
  children.set(id, child);
  const stderr = captureStderr(child);
  child.on("message", (message) => post({ kind: "message", id, message }));
  child.on("error", fail);
  child.on("exit", (code, signal) => {
    children.delete(id);
    post({ kind: "exit", id, code, signal, stderr: stderr() });
  });
  if (child.pid !== undefined) post({ kind: "started", id, pid: child.pid });
}

/** Captures the beginning of a child's error output. */
function captureStderr(child: ChildProcess): () => string {
  let text = "";
  const stream = child.stderr as Socket | null; // a pipe, as spawned above
  stream?.setEncoding("utf8");
  stream?.on("data", (piece: string) => {
    if (text.length < STDERR_CHARS_MAX) text += piece.slice(0, STDERR_CHARS_MAX - text.length);
  });
  return () => text;
}
