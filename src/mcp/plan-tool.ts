import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { FILES_MAX } from "../wire/daemon.ts";
import { Cursor, fitting, NextCursor } from "./budget.ts";
import type { CallerDaemon, Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most actions that an answer lists; their counts are of all. */
const ACTIONS_MAX = 100;

/** Arguments of the tool `plan_sync`. */
export const PlanInput = z.object({
  limit: z.int().min(0).max(ACTIONS_MAX).default(20).describe("Maximum number of listed actions."),
  cursor: Cursor.describe(
    "next_cursor of the previous answer. Default: the first actions. Each call plans anew.",
  ),
});
export type PlanInput = z.infer<typeof PlanInput>;

/** Result of the tool `plan_sync`. */
export const PlanOutput = z.object({
  counts: z.record(z.string(), z.number()).describe("How many files of each action, of all."),
  estimate: z.object({
    documents: z.number(),
    bytes: z.number(),
    tokens: z.number().describe("Of the texts that are known, at four characters each."),
    unknown: z
      .number()
      .describe("Documents whose text is not known: pictures, and files not read here, or not in time."),
    pictures: z.number().describe("How many of these are pictures or scans."),
    cost: z.number().optional().describe("Of embedding; absent without a price in the configuration."),
  }),
  planned: z
    .array(z.object({ folder: z.string(), path: z.string(), action: z.string() }))
    .describe("By path."),
  next_cursor: NextCursor,
});
export type PlanOutput = z.infer<typeof PlanOutput>;

/** Returns what the next pass of this machine's daemon would do and send. Changes nothing. */
export async function planSync(
  reached: Reached,
  _files: KnownFiles,
  { limit, cursor }: PlanInput,
  signal: AbortSignal,
): Promise<ToolOutput<PlanOutput>> {
  const offset = offsetOf(cursor);
  const wanted = Math.min(offset + limit, FILES_MAX);
  const plan = await daemonOf(reached).plan(wanted, signal);
  if (plan === undefined) throw noDaemon("`kbsync sync --dry-run` plans without one.");
  const { counts, estimate } = plan;
  const rest = plan.planned
    .slice(offset)
    .map(({ source, path, action }) => ({ folder: source, path, action }));
  const planned = [...fitting(rest)];
  const next = offset + planned.length;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const isEnd = planned.length === 0 || next >= Math.min(total, FILES_MAX);
  const data = { counts, estimate, planned, next_cursor: isEnd ? null : String(next) };
  return { data, text: planText(data) };
}

function offsetOf(cursor = "0"): number {
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor);
  throw new KbsyncError(`${cursor} is no cursor of a plan`, {
    code: "cursor_invalid",
    hint: "Send next_cursor of an earlier answer, or none.",
  });
}

function planText({ counts, estimate, planned, next_cursor: cursor }: PlanOutput): string {
  const total = Object.entries(counts).map(([action, count]) => `${count} ${action}`);
  if (total.length === 0) return "Nothing would be sent.";
  const { documents, bytes, tokens, unknown, pictures, cost } = estimate;
  const unread =
    unknown === 0 ? "" : `, not counting ${unknown} whose text is not known (${pictures} pictures or scans)`;
  const price = cost === undefined ? "" : `; embedding them costs about ${cost.toFixed(4)}`;
  const lines = planned.map(({ folder, path, action }) => `${action} ${folder}/${path}`);
  return [
    `Actions: ${total.join(", ")}.`,
    `Sends ${documents} documents, ${bytes} bytes, about ${tokens} tokens${unread}${price}.`,
    ...lines,
    ...(cursor === null ? [] : [`[More actions: call plan_sync with cursor ${cursor}.]`]),
  ].join("\n");
}

/** Returns this machine's daemon. Throws `daemon_private` for callers that it does not answer. */
export function daemonOf({ daemon }: Reached): CallerDaemon {
  if (daemon !== undefined) return daemon;
  throw new KbsyncError("the daemon of this machine answers only the key that its folders are synced with", {
    code: "daemon_private",
    hint: "Its answers name files of the machine. A client over stdio without --key-file uses that key.",
  });
}

/** `daemon_missing`: no daemon runs. */
export function noDaemon(hint: string): KbsyncError {
  return new KbsyncError("no daemon runs on this machine", { code: "daemon_missing", retryable: true, hint });
}
