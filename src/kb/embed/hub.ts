import { createHash } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { KNOWN_FILES, MODEL_ID } from "./model-files.ts";

/** The public model hub. */
export const HUB_URL = "https://huggingface.co";

/** Timeout of one file: 54 MB over a slow line. */
const FILE_TIMEOUT_MS = 10 * 60_000;
/** Largest accepted file; no file of the model is larger. */
const FILE_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Downloads the model's files into `folder`. Verifies the SHA-256 of each file before renaming it to its final name, so that
 * an interrupted or altered download is never used. Throws `model_download` if a file cannot be downloaded.
 */
export async function downloadModel(
  folder: string,
  hubUrl: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const [file, sha256] of KNOWN_FILES) {
    const url = `${hubUrl}/${MODEL_ID}/resolve/main/${file}`;
    try {
      await downloadFile(url, join(folder, file), sha256, signal);
    } catch (cause) {
      signal?.throwIfAborted();
      throw new KbsyncError(`cannot download ${file} of the embedding model`, {
        code: "model_download",
        subject: url,
        retryable: true,
        cause,
      });
    }
  }
}

async function downloadFile(
  url: string,
  path: string,
  expectedSha256: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const timeout = AbortSignal.timeout(FILE_TIMEOUT_MS);
  const answer = await fetch(url, {
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  });
  if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
  await mkdir(dirname(path), { recursive: true });
  const partPath = `${path}.${process.pid}.part`;
  try {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    {
      await using part = await open(partPath, "w");
      for await (const bytes of answer.body) {
        sizeBytes += bytes.byteLength;
        if (sizeBytes > FILE_BYTES_MAX) throw new Error(`larger than ${FILE_BYTES_MAX} bytes`);
        hash.update(bytes);
        await part.writeFile(bytes);
      }
      await part.sync();
    }
    const actual = hash.digest("hex");
    if (actual !== expectedSha256) throw new Error(`SHA-256 ${actual}, expected ${expectedSha256}`);
    await rename(partPath, path);
  } finally {
    await rm(partPath, { force: true });
  }
}
