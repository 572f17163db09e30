import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { siblingModule } from "../../../lib/sibling.ts";
import type { PdfReply, PdfRequest } from "./pdf-child.ts";
import { codeOfExit, pdfError } from "./pdf-error.ts";

/** Limits of one child process. */
export interface PdfLimits {
  /** Memory it may take beyond what Node itself takes. */
  readonly memoryMb: number;
  /** Wall time for one document; the child is killed after it. */
  readonly timeoutMs: number;
}

/** The text of a PDF, page by page. */
export interface PdfPages {
  readonly texts: readonly string[];
}

/** A child process that reads PDFs, one at a time. */
export interface PdfProcess {
  /** Whether it may be given another document: alive, and neither grown nor used up. */
  fit(): boolean;
  /** Rejects with a code of `extractText`, or with the signal's reason. One that is not fit after it is to be killed. */
  extract(request: PdfRequest, signal: AbortSignal | undefined): Promise<PdfPages>;
  /** Ends it at once; a document under way fails with `reason`. */
  kill(reason?: Error): void;
}

/**
 * Processor time after which a child is not used again. Its own limit is this and a few documents' time on top: should
 * the parent die while the child is caught in a loop, the kernel ends it.
 */
const REUSE_CPU_MS = 60_000;
/** Share of the memory limit for JavaScript's heap: the rest is for buffers, which V8 does not count. */
const HEAP_SHARE = 0.6;
/** Resident memory of Node and PDF.js before any document. */
const FRESH_RSS_BYTES = 110 * 1024 * 1024;
/** Most of the child's error output that is kept. */
const STDERR_CHARS_MAX = 4000;

/** Sets the limits and becomes the child. Refused limits (a stricter one is in force already) change nothing. */
const LIMITED = 'ulimit -c 0; ulimit -d "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; shift 2; exec "$@"';

/** The child may read files: no writing, no processes, no native code, even if a document should take it over. */
const CONFINED = ["--permission", "--allow-fs-read=*"];

/**
 * Data segment that an empty Node process counts, in KB: V8 reserves some 500 MB of it for code without using it, and
 * how much depends on its version. Undefined where the system does not tell (not Linux); then only the heap is limited.
 */
export async function measureBaseKb(): Promise<number | undefined> {
  const script = "require('node:fs').readFileSync('/proc/self/status', 'utf8')";
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["-p", script], {
      env: {},
      timeout: 10_000,
    });
    const found = /^VmData:\s+(\d+) kB$/m.exec(stdout);
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}

/**
 * Starts a child under its limits. The kernel's limit on the data segment (RLIMIT_DATA, since Linux 4.7 for every
 * private writable mapping) covers array buffers too, which `--max-old-space-size` and worker limits do not.
 */
export function startPdfProcess(baseKb: number | undefined, limits: PdfLimits): PdfProcess {
  const dataKb = baseKb === undefined ? "unlimited" : String(baseKb + limits.memoryMb * 1024);
  const cpuSeconds = String(Math.ceil((REUSE_CPU_MS + 4 * limits.timeoutMs) / 1000));
  const heap = `--max-old-space-size=${Math.floor(limits.memoryMb * HEAP_SHARE)}`;
  const module = fileURLToPath(siblingModule(import.meta.url, "pdf-child"));
  const child = spawn(
    "/bin/sh",
    ["-c", LIMITED, "sh", dataKb, cpuSeconds, process.execPath, heap, ...CONFINED, module],
    // An empty environment: the child reads hostile files and has no use for the service's keys.
    { stdio: ["ignore", "ignore", "pipe", "ipc"], serialization: "advanced", env: {} },
  );
  const stderr = keepStderr(child);
  holdOpen(child, false);
  let fit = true;
  child.on("exit", () => (fit = false)).on("error", () => (fit = false));
  let abandon: ((reason: Error) => void) | undefined;

  return {
    fit: () => fit,
    kill: (reason) => {
      fit = false;
      if (reason !== undefined) abandon?.(reason);
      child.kill("SIGKILL");
    },
    extract: async (request, signal) => {
      holdOpen(child, true);
      try {
        const asked = askOnce(child, request, limits, stderr, signal);
        abandon = asked.abandon;
        const { texts, rssBytes, cpuMs } = await asked.answer;
        fit &&= cpuMs < REUSE_CPU_MS && rssBytes < FRESH_RSS_BYTES + (limits.memoryMb * 1024 * 1024) / 2;
        return { texts };
      } catch (error) {
        fit = false; // whatever a failed document left behind does not meet the next one
        throw error;
      } finally {
        abandon = undefined;
        holdOpen(child, false);
      }
    },
  };
}

interface Answer extends PdfPages {
  readonly rssBytes: number;
  readonly cpuMs: number;
}

function askOnce(
  child: ChildProcess,
  request: PdfRequest,
  limits: PdfLimits,
  stderr: () => string,
  signal: AbortSignal | undefined,
): { readonly answer: Promise<Answer>; readonly abandon: (reason: Error) => void } {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer>();
  const texts: string[] = [];
  const onMessage = (reply: PdfReply): void => {
    if (reply.kind === "pages") for (const text of reply.texts) texts.push(text);
    if (reply.kind === "failed") settle(pdfError(reply.code, request, limits, reply.detail));
    if (reply.kind === "done") settle(undefined, { texts, rssBytes: reply.rssBytes, cpuMs: reply.cpuMs });
  };
  const onExit = (code: number | null, killedBy: string | null): void => {
    const detail = `the child process ended: ${killedBy ?? `exit code ${code}`}\n${stderr()}`;
    settle(pdfError(codeOfExit(code, killedBy, stderr()), request, limits, detail));
  };
  const onError = (error: Error): void =>
    settle(pdfError("extraction_failed", request, limits, error.message));
  const onAbort = (): void => settle(signal?.reason);
  const timer = setTimeout(() => {
    settle(pdfError("extraction_timeout", request, limits, `still busy after ${limits.timeoutMs} ms`));
  }, limits.timeoutMs);

  const settle = (error: unknown, result?: Answer): void => {
    clearTimeout(timer);
    child.off("message", onMessage).off("exit", onExit).off("error", onError);
    signal?.removeEventListener("abort", onAbort);
    if (result === undefined) reject(error);
    else resolve(result);
  };
  child.on("message", onMessage).on("exit", onExit).on("error", onError);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  child.send(request, (error) => {
    if (error !== null) onError(error);
  });
  return { answer, abandon: settle };
}

/** Whether the child keeps this process alive: only while it works on a document. */
function holdOpen(child: ChildProcess, held: boolean): void {
  if (held) {
    child.ref();
    child.channel?.ref();
  } else {
    child.unref();
    child.channel?.unref();
  }
}

/** Keeps the beginning of what the child says before it dies. */
function keepStderr(child: ChildProcess): () => string {
  let text = "";
  const stream = child.stderr as Socket | null; // a pipe, as spawned above
  stream?.setEncoding("utf8");
  stream?.on("data", (piece: string) => {
    if (text.length < STDERR_CHARS_MAX) text += piece.slice(0, STDERR_CHARS_MAX - text.length);
  });
  stream?.unref();
  return () => text;
}
