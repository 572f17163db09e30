import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import type { Erased } from "../wire/daemon.ts";
import type { ErasureReport } from "../wire/erasure.ts";
import { cutText } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { type Report, ReportCursor, ReportFields, reportAt, reportOf, reportOutput } from "./erase-report.ts";
import type { KnownFiles } from "./known-files.ts";
import { mayBeId } from "./named-document.ts";
import { daemonOf, noDaemon } from "./plan-tool.ts";
import type { ToolOutput } from "./tool-result.ts";

const TITLE_CHARS_SHOWN = 200;

/** Arguments of the tool `erase_document`. */
export const EraseInput = z.object({
  document: z
    .string()
    .min(1)
    .max(4096)
    .describe("The document_id. list_changes has those of deleted files; paths are not accepted."),
  confirm: z
    .string()
    .min(1)
    .max(4096)
    .describe(
      "The document's title or path, exactly as read_document returns it. Take it from the person who wants the document erased.",
    ),
  cursor: ReportCursor,
});
export type EraseInput = z.infer<typeof EraseInput>;

/** Result of the tool `erase_document`. */
export const EraseOutput = z.object({
  document_id: z.string(),
  ...ReportFields,
});
export type EraseOutput = z.infer<typeof EraseOutput>;

/**
 * Erases a document that the caller names twice, by id and by title or path. That prevents mistakes, no more: a caller finds both in
 * the answer of a search, so the client must ask a person. The daemon erases for the key that its folders are synced with, the
 * service for other keys. Throws `document_unknown`, `erase_unconfirmed`, `still_synced`, and what daemon and service refuse.
 */
export async function eraseDocument(
  reached: Reached,
  files: KnownFiles,
  { document: id, confirm, cursor }: EraseInput,
  signal: AbortSignal,
): Promise<ToolOutput<EraseOutput>> {
  const output = (report: Report): ToolOutput<EraseOutput> =>
    reportOutput({ document_id: id }, "erase_document", report);
  if (cursor !== undefined) return output(reportAt(cursor));
  if (!mayBeId(id)) {
    throw new KbsyncError(`${cutText(id, TITLE_CHARS_SHOWN)} is no document_id`, {
      code: "document_unknown",
      hint: "Nothing was erased. search_passages returns the document_id, list_changes that of a deleted file.",
    });
  }
  const names = await namesOf(reached, files, id, signal);
  if (confirm === id || !names.includes(confirm)) {
    throw new KbsyncError("confirm does not repeat the title or the path of this document", {
      code: "erase_unconfirmed",
      hint: "Nothing was erased. Read the document with read_document first, and ask the person who wants it erased.",
    });
  }
  return output(reportOf(await eraseAt(reached, files, id, signal)));
}

/** Returns what confirms the erasure. Throws `still_synced` for a live document of a folder that this machine does not sync. */
async function namesOf(
  { service }: Reached,
  files: KnownFiles,
  id: string,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const record = await service.record(id, signal);
  if (record === undefined)
    throw new KbsyncError("the service cannot show the document", { code: "erase_unsupported" });
  const path = record.metadata?.["path"];
  const file = files.fileOf(id);
  if (file === undefined && typeof path === "string" && !record.isDeleted) {
    throw new KbsyncError(`${cutText(path, TITLE_CHARS_SHOWN)} is in no folder that this machine syncs`, {
      code: "still_synced",
      hint: "Nothing was erased: another machine may have the file, and would send it again. Delete the file there first, or the document.",
    });
  }
  return [record.title, path, ...(file === undefined ? [] : [file.path, `${file.folder}/${file.path}`])];
}

async function eraseAt(
  reached: Reached,
  files: KnownFiles,
  id: string,
  signal: AbortSignal,
): Promise<Erased | { readonly service: ErasureReport }> {
  if (reached.ownsLedger || files.fileOf(id) !== undefined) {
    const done = await daemonOf(reached).erase({ document: id }, signal);
    if (done === undefined) throw noDaemon(`\`kbsync erase --document ${id}\` erases without one.`);
    return done;
  }
  const report = await reached.service.erase(id, signal);
  if (report !== undefined) return { service: report };
  throw new KbsyncError("the service cannot erase documents", { code: "erase_unsupported" });
}
