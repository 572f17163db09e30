import { z } from "zod";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { Erased } from "../wire/daemon.ts";
import type { ErasureReport } from "../wire/erasure.ts";
import { cutText, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import { daemonOf, noDaemon } from "./plan-tool.ts";
import type { ToolOutput } from "./tool-result.ts";

const TITLE_CHARS_SHOWN = 200;

/** Arguments of the tool `erase_document`. */
export const EraseInput = z.object({
  document: z.string().min(1).max(4096).describe("The document_id, or the path of the file."),
  confirm: z
    .string()
    .min(1)
    .max(4096)
    .describe(
      "The document's title or path, exactly as read_document returns it. Of a document without either: its document_id.",
    ),
});
export type EraseInput = z.infer<typeof EraseInput>;

/** Result of the tool `erase_document`. */
export const EraseOutput = z.object({
  document_id: z.string(),
  service: z
    .object({
      documents: z.number(),
      chunks: z.number(),
      files: z.number(),
      requests: z.number(),
      messages: z.number(),
      turns: z.number(),
      images: z.number(),
    })
    .describe("What was erased at the service."),
  machine: z
    .object({ files: z.number(), texts: z.number(), activities: z.number() })
    .nullable()
    .describe("What was erased in the ledger, trash and log of this machine; null: it was not asked."),
  remains: z
    .array(z.object({ kind: z.string(), name: z.string(), reason: z.string() }))
    .describe("What still holds the text, or may hold it; as many as fit into an answer."),
  remains_total: z.number(),
});
export type EraseOutput = z.infer<typeof EraseOutput>;

/**
 * Erases a document that the caller names twice: once to find it, and once by what only a caller that has read it knows. The daemon
 * erases for the key that its folders are synced with, the service for other keys. Throws `erase_unconfirmed`, and what they refuse.
 */
export async function eraseDocument(
  reached: Reached,
  files: KnownFiles,
  { document, confirm }: EraseInput,
  signal: AbortSignal,
): Promise<ToolOutput<EraseOutput>> {
  const { id, names } = await withDocument(reached, files, document, (found) =>
    namesOf(reached, files, found, document, signal),
  );
  if (!names.includes(confirm)) {
    throw new KbsyncError("confirm does not repeat the title or the path of this document", {
      code: "erase_unconfirmed",
      hint: "Nothing was erased. Read the document with read_document first, and ask the person who wants it erased.",
    });
  }
  const done = await eraseAt(reached, files, id, signal);
  const { remains, ...service } = done.service;
  const machine =
    "texts" in done ? { files: done.files, texts: done.texts, activities: done.activities } : null;
  const data = {
    document_id: id,
    service,
    machine,
    remains: [...fitting(remains)],
    remains_total: remains.length,
  };
  return { data, text: reportText(data) };
}

interface Named {
  readonly id: string;
  /** What confirms the erasure. */
  readonly names: readonly string[];
}

async function namesOf(
  { service }: Reached,
  files: KnownFiles,
  id: string,
  named: string,
  signal: AbortSignal,
): Promise<Named> {
  try {
    const record = await service.record(id, signal);
    if (record === undefined)
      throw new KbsyncError("the service cannot show the document", { code: "erase_unsupported" });
    const path = record.metadata?.["path"];
    const file = files.fileOf(id);
    const names = [record.title, path, file?.path, file && `${file.folder}/${file.path}`];
    const given = names.filter((name): name is string => typeof name === "string" && name !== "");
    return { id, names: given.length === 0 ? [id] : given };
  } catch (error) {
    // The service has no such document, or shows none that is deleted; there may be traces of it.
    if (codeOf(error) !== "resource_not_found" || named !== id) throw error;
    return { id, names: [id] };
  }
}

async function eraseAt(
  reached: Reached,
  files: KnownFiles,
  id: string,
  signal: AbortSignal,
): Promise<Erased | { readonly service: ErasureReport }> {
  if (reached.ownsLedger || files.fileOf(id) !== undefined) {
    const done = await daemonOf(reached).erase(id, signal);
    if (done === undefined) throw noDaemon(`\`kbsync erase --document ${id}\` erases without one.`);
    return done;
  }
  const report = await reached.service.erase(id, signal);
  if (report !== undefined) return { service: report };
  throw new KbsyncError("the service cannot erase documents", { code: "erase_unsupported" });
}

function reportText({ document_id, service, machine, remains, remains_total }: EraseOutput): string {
  const counts = Object.entries(service).map(([what, count]) => `${count} ${what}`);
  const here = machine === null ? [] : Object.entries(machine).map(([what, count]) => `${count} ${what}`);
  const more = remains_total - remains.length;
  return [
    `Erased document ${document_id}. At the service: ${counts.join(", ")}.`,
    ...(here.length === 0 ? [] : [`On this machine: ${here.join(", ")}.`]),
    ...remains.map(
      ({ kind, name, reason }) => `Left: ${kind} ${cutText(name, TITLE_CHARS_SHOWN)}: ${reason}`,
    ),
    ...(more > 0 ? [`And ${more} more.`] : []),
  ].join("\n");
}
