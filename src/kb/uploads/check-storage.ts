import { messageOf } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import type { KnownUpload } from "../store/maintenance.ts";
import { openBucket, type Bucket } from "./bucket.ts";
import { checkUploads, NAMED_MAX, SEND_AGAIN, type FileCheckOptions } from "./check-files.ts";
import { probeFolder } from "./folder.ts";
import type { FileStorage } from "./open-files.ts";
import { probeBucket } from "./s3.ts";

/** Most objects whose sizes are compared. The rest is compared when it is read. */
const OBJECTS_MAX = 1_000_000;

/**
 * Checks a storage of uploaded files by writing, reading and removing a small file, and compares the files there with those that the
 * store knows. Undefined: they are not compared.
 */
export async function checkStorage(
  storage: FileStorage,
  known: readonly KnownUpload[] | undefined,
  options: FileCheckOptions,
): Promise<readonly Finding[]> {
  try {
    if (storage.kind === "folder") {
      await probeFolder(storage.path);
      return known === undefined ? [] : await checkUploads(storage.path, known, options);
    }
    const bucket = await openBucket(storage);
    try {
      await probeBucket(bucket);
      return known === undefined || options.quick === true ? [] : await checkObjects(bucket, known);
    } finally {
      bucket.close();
    }
  } catch (error) {
    options.signal.throwIfAborted();
    return [unusable(storage, error)];
  }
}

/** Compares the sizes of objects. Their content is compared whenever it is read. */
async function checkObjects(bucket: Bucket, known: readonly KnownUpload[]): Promise<readonly Finding[]> {
  const listed = await bucket.list("", OBJECTS_MAX);
  if (listed.length >= OBJECTS_MAX) return [];
  const sizes = new Map(listed.map(({ key, sizeBytes }) => [key, sizeBytes]));
  const findings: Finding[] = [];
  for (const { token, name, sizeBytes } of known) {
    const found = sizes.get(token);
    if (found === sizeBytes) continue;
    const message =
      found === undefined
        ? `the uploaded file ${name} is missing`
        : `the uploaded file ${name} has ${found} bytes, expected ${sizeBytes}`;
    findings.push({ check: "uploads", level: "damage", subject: name, message, remedy: SEND_AGAIN });
    if (findings.length === NAMED_MAX) break;
  }
  return findings;
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
        : "Check service.files and service.s3, the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what AWS tools use), and that they allow s3:PutObject, GetObject, DeleteObject, ListBucket, ListBucketMultipartUploads and AbortMultipartUpload.",
  };
}
