import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { KnownUpload } from "../store/maintenance.ts";
import type { Finding } from "../../lib/finding.ts";

/** Options of a check of the uploads. */
export interface FileCheckOptions {
  /** Compares only sizes; reads no file. */
  readonly quick?: boolean;
  readonly signal: AbortSignal;
}

/** Most damaged files that the findings name. */
const NAMED_MAX = 20;

/** The remedy for a file that is lost. */
const SEND_AGAIN =
  "The documents made from it stay searchable, but the file itself cannot be downloaded. Upload it again, or restore a " +
  "backup that contains it.";

/**
 * Compares the folder of uploads with the store: each file must exist, with the recorded size and hash. A service may use both
 * meanwhile: a file is only wrong if the store knew it before and after the folder was read, and only unknown if it knew it at neither
 * time.
 */
export async function checkUploads(
  folder: string,
  readUploads: () => readonly KnownUpload[],
  options: FileCheckOptions,
): Promise<readonly Finding[]> {
  const before = readUploads();
  const wrong: { readonly upload: KnownUpload; readonly message: string }[] = [];
  for (const upload of before) {
    if (wrong.length === NAMED_MAX) break;
    const message = await problemOf(folder, upload, options);
    if (message !== undefined) wrong.push({ upload, message });
  }
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name !== "incoming") : [];
  const after = new Set(readUploads().map(({ token }) => token));
  const known = new Set([...after, ...before.map(({ token }) => token)]);
  const findings = wrong
    .filter(({ upload }) => after.has(upload.token))
    .map(({ upload, message }): Finding => ({
      check: "uploads",
      level: "damage",
      subject: upload.name,
      message,
      remedy: SEND_AGAIN,
    }));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length === 0) return findings;
  const files = unknown.length === 1 ? "a file" : `${unknown.length} files`;
  return findings.concat({
    check: "uploads",
    level: "warning",
    subject: folder,
    message: `the folder of uploads has ${files} that the store does not know, for example ${unknown[0] ?? ""}`,
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
