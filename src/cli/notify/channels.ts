import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { request } from "undici";
import { KbsyncError, codeOf } from "../../lib/failure.ts";
import { oneLine } from "../../lib/one-line.ts";
import { openAgent } from "../../lib/proxy.ts";
import { visibleLine } from "../output/visible.ts";
import type { Notice } from "./needs.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A command that takes longer is killed. */
const COMMAND_MS_MAX = 60_000;
const POST_MS_MAX = 15_000;
/** Maximum number of logged characters of a program's error output. */
const COMPLAINT_CHARS_MAX = 300;

/**
 * Runs a program with its arguments, without a shell. It gets the notice as JSON on standard input, and its text in KBSYNC_TEXT.
 * Rejects if it cannot be started, fails, or takes longer than a minute.
 */
export async function runCommand(command: readonly string[], notice: Notice, env: Env): Promise<void> {
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    env: { ...env, KBSYNC_TEXT: notice.text },
    stdio: ["pipe", "ignore", "pipe"],
    timeout: COMMAND_MS_MAX,
    killSignal: "SIGKILL",
  });
  // A program need not read its input.
  child.stdin.on("error", () => undefined);
  child.stdin.end(JSON.stringify(notice));
  const [code, complaint] = await Promise.all([
    new Promise<number | string>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status, signal) => resolve(status ?? signal ?? "no status"));
    }),
    text(child.stderr).catch(() => ""),
  ]);
  if (code === 0) return;
  const words = visibleLine(oneLine(complaint).slice(0, COMPLAINT_CHARS_MAX));
  throw new KbsyncError(`${file} ended with ${code}${words === "" ? "" : `: ${words}`}`, {
    code: "notify_failed",
  });
}

/** Posts a notice as JSON. Rejects unless the answer is a 2xx within 15 seconds. */
export async function postNotice(url: string, notice: Notice): Promise<void> {
  const dispatcher = openAgent();
  try {
    const { statusCode, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(notice),
      dispatcher,
      signal: AbortSignal.timeout(POST_MS_MAX),
    });
    await body.dump();
    if (statusCode < 200 || statusCode > 299)
      throw new KbsyncError(`${new URL(url).host} answered with status ${statusCode}`, {
        code: "notify_failed",
      });
  } finally {
    await dispatcher.destroy();
  }
}

/** Shows a notice on the desktop, by `notify-send` of libnotify. Rejects if that is not installed. */
export async function notifyDesktop(notice: Notice, env: Env): Promise<void> {
  const lines = notice.needs.map((need) => need.text).join("\n");
  const command = ["notify-send", "--app-name=kbsync", "--urgency=normal", "--", "kbsync needs you", lines];
  await runCommand(command, notice, env).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new KbsyncError("notify-send is not installed (Debian: libnotify-bin)", { code: "notify_failed" });
  });
}
