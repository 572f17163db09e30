import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import type { Change } from "../wire/changes.ts";
import { readFitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most changes per answer. */
const CHANGES_MAX = 100;

/** Arguments of the tool `list_changes`. */
export const ChangesInput = z.object({
  cursor: z
    .string()
    .max(64)
    .optional()
    .describe("next_cursor of an earlier answer, or now. Default: the oldest change that is stored."),
});
export type ChangesInput = z.infer<typeof ChangesInput>;

/** Result of the tool `list_changes`. */
export const ChangesOutput = z.object({
  changes: z.array(
    z.object({
      document_id: z.string(),
      change: z.enum(["created", "updated", "deleted"]),
      at: z.string(),
      version: z.number().describe("Of the text; 0 until there is one."),
      sha256: z.string().nullable(),
      path: z.string().nullable(),
    }),
  ),
  next_cursor: z.string().describe("Continues after these changes, now or later."),
  more: z.boolean().describe("Whether there are further changes already."),
});
export type ChangesOutput = z.infer<typeof ChangesOutput>;

/** Lists what happened to documents, from a cursor on. */
export async function listChanges(
  { service }: Reached,
  _files: KnownFiles,
  { cursor }: ChangesInput,
  signal: AbortSignal,
): Promise<ToolOutput<ChangesOutput>> {
  const { entries, nextCursor, more } = await readFitting(CHANGES_MAX, async (limit) => {
    const page = await service.changes({ cursor, limit }, signal);
    if (page === undefined)
      throw new KbsyncError("the service has no feed of changes", { code: "changes_unsupported" });
    return { entries: page.changes.map(entryOf), nextCursor: page.cursor, more: page.more };
  });
  const lines = entries.map(
    ({ change, at, path, document_id: id, version }) =>
      `${at} ${change} ${path ?? id}${version > 0 ? ` (version ${version})` : ""}`,
  );
  if (lines.length === 0) lines.push("Nothing has changed.");
  lines.push(`[${more ? "More changes" : "Later changes"}: call list_changes with cursor ${nextCursor}.]`);
  return { data: { changes: [...entries], next_cursor: nextCursor, more }, text: lines.join("\n") };
}

function entryOf({ _id, type, timestamp, version, sha256, path }: Change): ChangesOutput["changes"][number] {
  return { document_id: _id, change: KINDS[type], at: timestamp, version, sha256, path };
}

const KINDS = {
  "document.created": "created",
  "document.updated": "updated",
  "document.deleted": "deleted",
} as const;
