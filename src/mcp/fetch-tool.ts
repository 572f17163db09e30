import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import type { ResourceRecord } from "../wire/resource.ts";
import { wholeCharacter } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { linkOf } from "./document-link.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { KnowledgeService } from "./service.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Characters of a document per answer: some 12,500 tokens. Claude Code takes 25,000. */
const TEXT_CHARS_MAX = 50_000;

/** Arguments of the tool `fetch`. */
export const FetchInput = z.object({
  id: z.string().min(1).max(4096).describe("id of a result, or the path of a synced file."),
  offset: z.int().min(0).default(0).describe("Character to start at."),
  limit: z.int().min(1).max(TEXT_CHARS_MAX).default(TEXT_CHARS_MAX).describe("Most characters."),
});
export type FetchInput = z.infer<typeof FetchInput>;

/** Result of the tool `fetch`. */
export const FetchOutput = z.object({
  id: z.string(),
  title: z.string(),
  text: z.string(),
  url: z.string().describe("For citations."),
  metadata: z.record(z.string(), z.string()).describe("path, folder, updated_at, characters, problem."),
  next_offset: z.number().nullable().describe("Offset of the next part; null at the end."),
});
export type FetchOutput = z.infer<typeof FetchOutput>;

/** Returns a document's text, or a part of it. */
export async function fetchDocument(
  reached: Reached,
  files: KnownFiles,
  { id, offset, limit }: FetchInput,
  signal: AbortSignal,
): Promise<ToolOutput<FetchOutput>> {
  const { record, text, chars, nextOffset } = await readPart(
    reached,
    files,
    { document: id, offset, limit },
    signal,
  );
  const { _id, title, url, updatedAt, metadata } = record;
  const file = files.fileOf(_id);
  const facts = {
    path: file?.path,
    folder: file?.folder,
    updated_at: updatedAt,
    characters: String(chars),
    problem: metadata?.status === "error" ? (metadata.message ?? "Its text could not be read.") : undefined,
  };
  const more = nextOffset === null ? "" : `\n\n[Cut here. The next part is at offset ${nextOffset}.]`;
  const data = {
    id: _id,
    title: title || (file?.path ?? _id),
    text: text + more,
    url: linkOf({ id: _id, url }, files),
    metadata: Object.fromEntries(
      Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== undefined),
    ),
    next_offset: nextOffset,
  };
  return { data, text: JSON.stringify(data) };
}

/** A part of a document's text. */
export interface DocumentPart {
  readonly record: ResourceRecord;
  readonly text: string;
  /** Characters of the whole text. */
  readonly chars: number;
  /** Null at the end. */
  readonly nextOffset: number | null;
}

/**
 * Reads a part of the text of a document, which is named by its id or its path. Offsets count UTF-16 units; no surrogate pair is
 * split. Throws `document_deleted`, and the errors of `withDocument`.
 */
async function readPart(
  reached: Reached,
  files: KnownFiles,
  { document, offset, limit }: { readonly document: string; readonly offset: number; readonly limit: number },
  signal: AbortSignal,
): Promise<DocumentPart> {
  const { service } = reached;
  const record = await withDocument(
    reached,
    files,
    document,
    async (id) => (await service.resource(id, signal)) ?? (await fromList(service, files, id, signal)),
  );
  const { _id: id } = record;
  const content = record.content ?? "";
  if (record.isDeleted)
    throw new KbsyncError(`the document ${id} was deleted`, { code: "document_deleted", subject: id });
  const from = wholeCharacter(content, Math.min(offset, content.length));
  const to = wholeCharacter(content, Math.min(from + limit, content.length));
  // A limit of one before a surrogate pair returns the whole pair, or reading would never advance.
  const end = to > from ? to : Math.min(from + 2, content.length);
  const nextOffset = end < content.length ? end : null;
  return { record, text: content.slice(from, end), chars: content.length, nextOffset };
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
