import { codeOf } from "../../lib/failure.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import type { StoredFile } from "../store/records.ts";
import { noteOf, type RequestContext } from "./request-context.ts";
import { newFileToken, safeFileName } from "../uploads/file-address.ts";
import type { Received } from "../uploads/file-area.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { Refusal } from "./refusal.ts";

/** What a client says of a file. */
export interface DeclaredFile {
  readonly name: string;
  /** A media type, or anything else. */
  readonly type: string;
}

/** Longest type that is kept: RFC 6838 allows 127 characters on each side of the slash. */
const TYPE_CHARS_MAX = 255;

/** Takes the bytes of an upload onto the disk. Throws `file_too_large` and `empty_file`; then nothing stays. */
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
 * Operation 1, once the bytes are here: finds what they are, names them and keeps them. Durable when it resolves. When it
 * throws, the bytes are gone, unless the store has noted them already: then they wait for `placeUpload` or the next
 * start. `declared` is the client's, as it came.
 */
export async function keepUpload(
  kb: KnowledgeBase,
  accountId: string,
  received: Received,
  declared: DeclaredFile,
  context: RequestContext = {},
): Promise<StoredFile> {
  const file = await noteUpload(kb, accountId, received, declared, context);
  await kb.files.keep(file.token);
  return file;
}

/**
 * Puts the bytes of an upload into their place that was noted but could not be kept. Does nothing where they are there.
 * Throws `file_not_found` where they are gone.
 */
export async function placeUpload(kb: KnowledgeBase, { token }: Pick<StoredFile, "token">): Promise<void> {
  if (await kb.files.holds(token)) return;
  try {
    await kb.files.keep(token);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new Refusal("file_not_found", "The file of the first request is no longer there.", {
      hint: "Upload it again under a new Idempotency-Key.",
    });
  }
}

async function noteUpload(
  kb: KnowledgeBase,
  accountId: string,
  received: Received,
  { name, type }: DeclaredFile,
  context: RequestContext,
): Promise<StoredFile> {
  try {
    const file: StoredFile = {
      token: received.token,
      accountId,
      name: safeFileName(name),
      mediaType: await detectMediaType(received.path),
      declaredType: type.slice(0, TYPE_CHARS_MAX).trim().toLowerCase(),
      sizeBytes: received.sizeBytes,
      sha256: received.sha256,
      createdAt: nowIso(kb),
    };
    // Row before place: a crash between the two leaves the file in `incoming/`, where the next start finds its row.
    const thread = context.thread === undefined ? {} : { thread: context.thread };
    await kb.store.addFile(file, { ...noteOf(context, 200, kb.nowMs()), ...thread });
    return file;
  } catch (error) {
    await kb.files.discard(received.token);
    throw error;
  }
}
