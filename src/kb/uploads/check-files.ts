import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { KnownUpload, ReadUploads } from "../store/maintenance.ts";
import type { Finding } from "../../lib/finding.ts";
import { compareUploads, type Comparison, type Suspicion } from "./compare.ts";

/** Options of a check of the uploads. */
export interface FileCheckOptions {
  /** Compares only sizes; reads no file. */
  readonly quick?: boolean;
  readonly signal: AbortSignal;
}

/** Most damaged files that the findings name. */
export const NAMED_MAX = 20;

/** The remedy for a file that is lost. */
const SEND_AGAIN =
  "The documents made from it stay searchable, but the file itself cannot be downloaded. Upload it again, or restore a " +
  "backup that contains it.";

/** Compares the folder of uploads with the store: each file must exist, with the recorded size and hash. */
export async function checkUploads(
  folder: string,
  readUploads: ReadUploads,
  options: FileCheckOptions,
): Promise<readonly Finding[]> {
  const found = await compareUploads(readUploads, async (known) => {
    const suspicions: Suspicion[] = [];
    for (const upload of known) {
      if (suspicions.length === NAMED_MAX) break;
      const message = await problemOf(folder, upload, options);
      if (message !== undefined) suspicions.push({ upload, message });
    }
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name !== "incoming") : [];
    return { suspicions, names };
  });
  return findingsOf(found, folder, "the folder of uploads");
}

/** Describes what a comparison found. */
export function findingsOf({ wrong, unknown }: Comparison, subject: string, what: string): Finding[] {
  const findings = wrong.map(({ upload, message }): Finding => ({
    check: "uploads",
    level: "damage",
    subject: upload.name,
    message,
    remedy: SEND_AGAIN,
  }));
  if (unknown.length === 0) return findings;
  const files = unknown.length === 1 ? "a file" : `${unknown.length} files`;
  return findings.concat({
    check: "uploads",
    level: "warning",
    subject,
    message: `${what} has ${files} that the store does not know, for example ${unknown[0] ?? ""}`,
    remedy: "They are never served. You can remove them, unless another store uses the same place.",
  });
}

async function problemOf(
  folder: string,
  { token, name, sizeBytes, sha256 }: KnownUpload,
  { quick = false, signal }: FileCheckOptions,
): Promise<string | undefined> {
  // A crash may have left the file in `incoming`; the next start moves it.
  const path = [join(folder, token), join(folder, "incoming", token)].find((candidate) =>
    existsSync(candidate),
  );
  if (path === undefined) return `the uploaded file ${name} is missing`;
  const actualBytes = statSync(path).size;
  if (actualBytes !== sizeBytes)
    return `the uploaded file ${name} has ${actualBytes} bytes, expected ${sizeBytes}`;
  if (quick) return undefined;
  const digest = createHash("sha256");
  for await (const piece of createReadStream(path, {
    highWaterMark: 1024 * 1024,
    signal,
  }) as AsyncIterable<Buffer>)
    digest.update(piece);
  return digest.digest("hex") === sha256
    ? undefined
    : `the content of the uploaded file ${name} differs from what was received`;
}
