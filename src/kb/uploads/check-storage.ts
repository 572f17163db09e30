import { messageOf } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import type { ReadUploads } from "../store/maintenance.ts";
import { openBucket, type Bucket } from "./bucket.ts";
import { checkUploads, findingsOf, NAMED_MAX, type FileCheckOptions } from "./check-files.ts";
import { compareUploads, type Suspicion } from "./compare.ts";
import { LEFTOVER_MS } from "./file-store.ts";
import { probeFolder } from "./folder.ts";
import type { FileStorage } from "./open-files.ts";
import { MARKS, probeBucket } from "./s3.ts";

/** Most objects whose sizes are compared. The rest is compared when it is read. */
const OBJECTS_MAX = 1_000_000;

/**
 * Checks a storage of uploaded files by writing, reading and removing a small file, and compares the files there with those that the
 * store knows. Undefined: they are not compared.
 */
export async function checkStorage(
  storage: FileStorage,
  readUploads: ReadUploads | undefined,
  options: FileCheckOptions,
): Promise<readonly Finding[]> {
  try {
    if (storage.kind === "folder") {
      await probeFolder(storage.path);
      return readUploads === undefined ? [] : await checkUploads(storage.path, readUploads, options);
    }
    const bucket = await openBucket(storage);
    try {
      await probeBucket(bucket);
      if (readUploads === undefined || options.quick === true) return [];
      return await checkObjects(bucket, readUploads, `s3://${storage.bucket}/${storage.prefix}`);
    } finally {
      bucket.close();
    }
  } catch (error) {
    options.signal.throwIfAborted();
    return [unusable(storage, error)];
  }
}

/** Compares the sizes of objects. Their content is compared whenever it is read. */
async function checkObjects(
  bucket: Bucket,
  readUploads: ReadUploads,
  subject: string,
): Promise<readonly Finding[]> {
  let isAll = true;
  const found = await compareUploads(readUploads, async (known) => {
    const listed = await bucket.list("", OBJECTS_MAX);
    isAll = listed.length < OBJECTS_MAX;
    // A list that was cut has all objects up to its last one.
    const last = isAll ? undefined : listed.at(-1)?.key;
    const sizes = new Map(listed.map(({ key, sizeBytes }) => [key, sizeBytes]));
    const suspicions: Suspicion[] = [];
    for (const upload of known) {
      const { token, name, sizeBytes } = upload;
      const bytes = sizes.get(token);
      if (bytes === sizeBytes) continue;
      if (suspicions.length === NAMED_MAX || (last !== undefined && token > last)) break;
      const problem = bytes === undefined ? "is missing" : `has ${bytes} bytes, expected ${sizeBytes}`;
      suspicions.push({ upload, message: `the uploaded file ${name} ${problem}` });
    }
    // Marks and what is marked are in flight, and so may be what is young. `recover` settles them.
    const names = listed
      .filter(({ key, modifiedMs }) => !key.startsWith(MARKS) && Date.now() - modifiedMs > LEFTOVER_MS)
      .map(({ key }) => key)
      .filter((key) => !sizes.has(`${MARKS}${key}`));
    return { suspicions, names };
  });
  // Tokens of the store beyond the most that are read would count as unknown.
  const isComplete = isAll && found.known < OBJECTS_MAX;
  return findingsOf(isComplete ? found : { ...found, unknown: [] }, subject, "the bucket");
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
