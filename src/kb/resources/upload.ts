import { detectMediaType } from "../ingest/extract/media-type.ts";
import type { StoredFile } from "../store/store.ts";
import { noteOf, type Asked } from "./asked.ts";
import { newFileToken, safeFileName } from "./file-address.ts";
import type { Received } from "./file-area.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { Refusal } from "./refusal.ts";

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
 * Operation 1, once the bytes are here: finds what they are, names them and keeps them. Durable when it resolves;
 * when it throws, the bytes are gone. `name` is the client's, as it came.
 */
export async function keepUpload(
  kb: KnowledgeBase,
  accountId: string,
  received: Received,
  name: string,
  asked: Asked = {},
): Promise<StoredFile> {
  try {
    const file: StoredFile = {
      token: received.token,
      accountId,
      name: safeFileName(name),
      mediaType: await detectMediaType(received.path),
      sizeBytes: received.sizeBytes,
      sha256: received.sha256,
      createdAt: nowIso(kb),
    };
    // Row before place: a crash between the two leaves the file in `incoming/`, where the next start finds its row.
    const thread = asked.thread === undefined ? {} : { thread: asked.thread };
    await kb.store.addFile(file, { ...noteOf(asked, 200, kb.nowMs()), ...thread });
    await kb.files.keep(file.token);
    return file;
  } catch (error) {
    await kb.files.discard(received.token);
    throw error;
  }
}
