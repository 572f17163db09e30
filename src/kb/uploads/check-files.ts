import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { KnownUpload } from "../store/sqlite/resources/known-uploads.ts";
import type { Finding } from "../../lib/finding.ts";

/** How uploads are checked. */
export interface FileCheckOptions {
  /** Compares sizes alone and reads no file. */
  readonly quick?: boolean;
  readonly signal: AbortSignal;
}

/** Files named of one kind of trouble. */
const NAMED = 20;

const SEND_AGAIN =
  "The documents made of it are searchable all the same; only the file itself cannot be fetched. Upload it again, or " +
  "restore a backup that has it.";

/** Compares the folder of uploads with what the store knows: each file is there, as long as it was, with the same bytes. */
export async function checkUploads(
  folder: string,
  known: Iterable<KnownUpload>,
  options: FileCheckOptions,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const tokens = new Set<string>();
  for (const upload of known) {
    tokens.add(upload.token);
    const message = await wrongWith(folder, upload, options);
    if (message !== undefined && findings.length < NAMED) {
      findings.push({ check: "uploads", level: "damage", subject: upload.name, message, remedy: SEND_AGAIN });
    }
  }
  const strays = existsSync(folder)
    ? readdirSync(folder).filter((name) => name !== "incoming" && !tokens.has(name))
    : [];
  if (strays.length > 0) {
    findings.push({
      check: "uploads",
      level: "warning",
      subject: folder,
      message: `${strays.length} files lie in the folder of uploads that the store does not know, ${strays[0] ?? ""} for one`,
      remedy: "They are never served and can be removed.",
    });
  }
  return findings;
}

async function wrongWith(
  folder: string,
  { token, name, sizeBytes, sha256 }: KnownUpload,
  { quick = false, signal }: FileCheckOptions,
): Promise<string | undefined> {
  // A crash may have left it where it arrived; the next start puts that right.
  const path = [join(folder, token), join(folder, "incoming", token)].find((place) => existsSync(place));
  if (path === undefined) return `the uploaded file ${name} is missing`;
  const found = statSync(path).size;
  if (found !== sizeBytes) return `the uploaded file ${name} has ${found} bytes, expected ${sizeBytes}`;
  if (quick) return undefined;
  const digest = createHash("sha256");
  for await (const piece of createReadStream(path, {
    highWaterMark: 1024 * 1024,
    signal,
  }) as AsyncIterable<Buffer>)
    digest.update(piece);
  return digest.digest("hex") === sha256
    ? undefined
    : `the uploaded file ${name} has other bytes than were received`;
}
