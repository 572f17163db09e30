import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import type { ResourceRecord } from "../wire/resource.ts";
import { wholeCharacter } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { KnowledgeService } from "./service.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Default number of characters per call: some 5,000 tokens. */
const CHARS_DEFAULT = 20_000;
/** Largest number of characters per call, for a model's window. */
const CHARS_MAX = 100_000;

/** Arguments of the tool `read_document`. */
export const ReadInput = z.object({
  document: z
    .string()
    .min(1)
    .max(4096)
    .describe("id or document_id of a result, or the path of a synced file."),
  offset: z.int().min(0).default(0).describe("Character to start at: next_offset of the previous answer."),
  limit: z
    .int()
    .min(1)
    .max(CHARS_MAX)
    .default(CHARS_DEFAULT)
    .describe(`Maximum number of characters to return, up to ${CHARS_MAX}.`),
});
export type ReadInput = z.infer<typeof ReadInput>;

/** Result of the tool `read_document`. */
export const ReadOutput = z.object({
  document_id: z.string(),
  title: z.string(),
  description: z.string(),
  path: z.string().nullable(),
  folder: z.string().nullable(),
  url: z.string().nullable(),
  updated_at: z.string().nullable(),
  status: z
    .string()
    .nullable()
    .describe("chunked: searchable; queued: not yet; error: its text could not be read."),
  message: z.string().nullable().describe("Why its text could not be read; null otherwise."),
  text: z.string(),
  offset: z.number(),
  total_chars: z.number(),
  next_offset: z.number().nullable().describe("Offset of the next part; null at the end."),
});
export type ReadOutput = z.infer<typeof ReadOutput>;

/** Reads a part of a document's text. Offsets count UTF-16 units; no surrogate pair is split. */
export async function readDocument(
  reached: Reached,
  files: KnownFiles,
  { document, offset, limit }: ReadInput,
  signal: AbortSignal,
): Promise<ToolOutput<ReadOutput>> {
  const { service } = reached;
  const record = await withDocument(
    reached,
    files,
    document,
    async (id) => (await service.resource(id, signal)) ?? (await fromList(service, files, id, signal)),
  );
  const id = record._id;
  if (record.isDeleted) {
    throw new KbsyncError(`the document ${id} was deleted`, { code: "document_deleted", subject: id });
  }
  const content = record.content ?? "";
  const from = wholeCharacter(content, Math.min(offset, content.length));
  const to = wholeCharacter(content, Math.min(from + limit, content.length));
  // A limit of one before a surrogate pair returns the whole pair, or reading would never advance.
  const end = to > from ? to : Math.min(from + 2, content.length);
  const file = files.fileOf(id);
  const data = {
    document_id: record._id,
    title: record.title,
    description: record.description,
    path: file?.path ?? null,
    folder: file?.folder ?? null,
    url: record.url ?? null,
    updated_at: record.updatedAt ?? null,
    status: record.metadata?.status ?? null,
    message: record.metadata?.status === "error" ? (record.metadata.message ?? null) : null,
    text: content.slice(from, end),
    offset: from,
    total_chars: content.length,
    next_offset: end < content.length ? end : null,
  };
  return { data, text: readText(data) };
}

/** Finds a resource in the list of its source, at a service without single resources. */
async function fromList(
  service: KnowledgeService,
  files: KnownFiles,
  id: string,
  signal: AbortSignal,
): Promise<ResourceRecord> {
  const folder = files.fileOf(id)?.folder;
  const source = files.sources.find((one) => one.folder === folder);
  if (source?.collectionId !== undefined) {
    const listed = await service.list(source.collectionId, source.ownerId, signal);
    const found = listed.find((record) => record._id === id);
    if (found !== undefined) return found;
  }
  throw new KbsyncError(`the service shows no document ${id}`, {
    code: "document_unknown",
    subject: id,
    hint: "This service shows documents only in the lists of their sources, and no source of this machine has it.",
  });
}

function readText(read: ReadOutput): string {
  const { title, path, document_id, status, message, text, offset, total_chars, next_offset } = read;
  const name = `${title} (${path === null ? "" : `${path}, `}document ${document_id})`;
  const whole = offset === 0 && next_offset === null;
  const part = whole ? "" : `, characters ${offset} to ${offset + text.length} of ${total_chars}`;
  const more = next_offset === null ? "" : `\n\n[It goes on at offset ${next_offset}.]`;
  const failed =
    status === "error" ? `[Its text could not be read${message === null ? "" : `: ${message}`}]\n\n` : "";
  return `${name}${part}\n\n${failed}${text}${more}`;
}
