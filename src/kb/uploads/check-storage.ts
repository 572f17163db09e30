import { messageOf } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import { openBucket } from "./bucket.ts";
import { probeFolder } from "./folder.ts";
import type { FileStorage } from "./open-files.ts";
import { probeBucket } from "./s3.ts";

/** Checks a storage of uploaded files by writing, reading and removing a small file. The bytes of a file are compared when it is read. */
export async function checkStorage(storage: FileStorage, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    if (storage.kind === "folder") {
      await probeFolder(storage.path);
      return [];
    }
    const bucket = await openBucket(storage);
    try {
      await probeBucket(bucket);
      return [];
    } finally {
      bucket.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    return [unusable(storage, error)];
  }
}

function unusable(storage: FileStorage, error: unknown): Finding {
  const subject = storage.kind === "folder" ? storage.path : `s3://${storage.bucket}/${storage.prefix}`;
  const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : "";
  return {
    check: "uploads-storage",
    level: "failure",
    subject,
    message: `uploaded files cannot be written to and read from ${subject}: ${messageOf(error)}${cause}`,
    remedy:
      storage.kind === "folder"
        ? "Check service.files, and that the folder is mounted and may be written."
        : "Check service.files, AWS_ENDPOINT_URL_S3, the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what AWS tools use), and that they allow s3:PutObject, GetObject, DeleteObject, ListBucket, ListBucketMultipartUploads and AbortMultipartUpload.",
  };
}
