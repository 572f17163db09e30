import { join } from "node:path";
import type { Logger } from "pino";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import type { BucketOptions } from "./bucket.ts";
import type { FileStore } from "./file-store.ts";
import { openFolder } from "./folder.ts";

/** Where uploaded files are. */
export type FileStorage =
  | { readonly kind: "folder"; readonly path: string }
  | (BucketOptions & { readonly kind: "bucket" });

/** Minimum interval between lines about a failing bucket. */
const REPORT_EVERY_MS = 60_000;

/**
 * Opens the store of uploaded files. Default: the folder `uploads` of the state folder, which this process alone uses; others may use a
 * storage of its own.
 */
export async function openFiles(
  storage: FileStorage | undefined,
  stateDir: string,
  log: Pick<Logger, "error">,
  steadyMs: () => number = () => performance.now(),
): Promise<FileStore> {
  if (storage === undefined) return openFolder({ folder: join(stateDir, "uploads") });
  if (storage.kind === "folder") {
    const folder = storage.path;
    return openFolder({ folder, isShared: true }).catch((error: unknown) => {
      throw new KbsyncError(`the folder of uploaded files ${folder} cannot be used: ${messageOf(error)}`, {
        code: "state_unusable",
        subject: folder,
        hint: "Check service.files, and that the folder is mounted and may be written.",
        cause: error,
      });
    });
  }
  const { openS3 } = await import("./s3.ts");
  let reportedMs = Number.NEGATIVE_INFINITY;
  return openS3({
    ...storage,
    cacheFolder: join(stateDir, "file-cache"),
    onProblem: (error) => {
      if (steadyMs() - reportedMs < REPORT_EVERY_MS) return;
      reportedMs = steadyMs();
      log.error({ err: error, bucket: storage.bucket }, "the bucket of uploaded files fails");
    },
  });
}
