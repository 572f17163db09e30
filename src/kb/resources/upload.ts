import { codeOf } from "../../lib/failure.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { mayBeCommitted } from "../store/commit-unknown.ts";
import type { StoredFile } from "../store/files.ts";
import { noteOf, type RequestContext } from "./request-context.ts";
import { newFileToken, safeFileName } from "../uploads/file-address.ts";
import type { Received } from "../uploads/file-store.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { Refusal } from "./refusal.ts";

/** A file as the client declares it. */
export interface DeclaredFile {
  readonly name: string;
  /** Supposedly a media type; may be any text. */
  readonly type: string;
}

/** Longest stored type: RFC 6838 allows 127 characters on each side of the slash. */
const TYPE_CHARS_MAX = 255;

/** Writes an upload to the disk. Throws `file_too_large` and `empty_file`, and then leaves no file. */
export async function receiveUpload(kb: KnowledgeBase, bytes: AsyncIterable<Uint8Array>): Promise<Received> {
  const { uploadBytes } = kb.limits;
  const received = await kb.files.receive(newFileToken(), bytes, uploadBytes, () =>
    fileTooLarge(uploadBytes),
  );
  if (received.sizeBytes > 0) return received;
  await kb.files.discard(received.token);
  throw new Refusal("empty_file", "file: the uploaded file is empty.", { field: "file" });
}

/** The refusal of a file over the limit. */
export function fileTooLarge(bytesMax: number): Refusal {
  return new Refusal("file_too_large", `file: expected at most ${bytesMax} bytes.`, { field: "file" });
}

/**
 * Operation 1, after the bytes arrived: detects their type, names and stores them. The file is durable when this resolves. If it
 * throws, the file is removed, unless the store may have recorded it: then it waits for `finishUpload` or `FileStore.recover`.
 * `declared` is unchecked.
 */
export async function storeUpload(
  kb: KnowledgeBase,
  accountId: string,
  received: Received,
  declared: DeclaredFile,
  context: RequestContext = {},
): Promise<StoredFile> {
  const file = await recordUpload(kb, accountId, received, declared, context);
  await kb.files.publish(file.token);
  return file;
}

/**
 * Moves the file of a recorded upload out of `incoming/` if an earlier attempt could not. Throws `file_not_found` if the file is
 * gone.
 */
export async function finishUpload(kb: KnowledgeBase, { token }: Pick<StoredFile, "token">): Promise<void> {
  if (await kb.files.holds(token)) return;
  try {
    await kb.files.publish(token);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new Refusal("file_not_found", "The file of the first request no longer exists.", {
      hint: "Upload it again under a new Idempotency-Key.",
    });
  }
}

async function recordUpload(
  kb: KnowledgeBase,
  accountId: string,
  received: Received,
  { name, type }: DeclaredFile,
  context: RequestContext,
): Promise<StoredFile> {
  const { token } = received;
  try {
    const file: StoredFile = {
      token,
      accountId,
      name: safeFileName(name),
      mediaType: await detectMediaType(received.path),
      declaredType: type.slice(0, TYPE_CHARS_MAX).trim().toLowerCase(),
      sizeBytes: received.sizeBytes,
      sha256: received.sha256,
      createdAt: nowIso(kb),
    };
    // Saved before the row is written: a row without a file would be a loss, a file without a row is a leftover.
    await kb.files.save(token);
    const thread = context.thread === undefined ? {} : { thread: context.thread };
    await kb.records.addFile(file, { ...noteOf(context, 200, kb.nowMs()), ...thread });
    return file;
  } catch (error) {
    await discardUnrecorded(kb, token, error);
    throw error;
  }
}

/** Discards a file whose row an error prevented. */
export async function discardUnrecorded(
  { files }: Pick<KnowledgeBase, "files">,
  token: string,
  error: unknown,
): Promise<void> {
  if (mayBeCommitted(error)) files.abandon(token);
  else await files.discard(token);
}
