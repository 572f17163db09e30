import { createHash } from "node:crypto";
import type { ActionContext } from "../actions/context.ts";
import type { AdoptableResource, AdoptingFile, UploadGroup } from "../plan/adoption.ts";
import type { ExpectedSize } from "../remote/download.ts";

/** An uploaded file and the size that its bytes must have at the service. */
export interface SizedFile extends AdoptingFile {
  readonly sizeBytes: number;
}

/** Files of one title and description that differ in size are few. Each size may cost a download of every resource. */
const SIZES_MAX = 4;

/**
 * Fetches possible uploads of ours and hashes them as a stream. Returns the hash by resource for those whose size a
 * file has. Omits what the service does not return.
 */
export async function hashUploads(
  { remote }: ActionContext,
  groups: readonly UploadGroup<SizedFile, AdoptableResource>[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  for (const { files, resources } of groups) {
    const sizes = [...new Set(files.map(({ sizeBytes }) => sizeBytes))].slice(0, SIZES_MAX);
    for (const { docId, url } of resources) {
      for (const sizeBytes of sizes) {
        const hash = url === undefined ? undefined : await hashUpload(remote, url, sizeBytes, signal);
        if (hash === undefined) continue;
        hashes.set(docId, hash);
        break;
      }
    }
  }
  return hashes;
}

/** Returns the SHA-256 of an uploaded file in hex; undefined if the service does not return one of that size. */
export async function hashUpload(
  remote: Pick<ActionContext["remote"], "download">,
  url: string,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  return (await measureUpload(remote, url, sizeBytes, signal))?.hash;
}

/** The content of an uploaded file: its size in bytes and the SHA-256 in hex. */
export interface UploadContent {
  readonly sizeBytes: number;
  readonly hash: string;
}

/** Fetches an uploaded file and hashes it as a stream. Returns undefined if the service does not return one of that size. */
export async function measureUpload(
  remote: Pick<ActionContext["remote"], "download">,
  url: string,
  expected: ExpectedSize,
  signal: AbortSignal,
): Promise<UploadContent | undefined> {
  for (let tries = 1; ; tries += 1) {
    const digest = createHash("sha256");
    let sizeBytes = 0;
    const sink = (piece: Buffer): Promise<void> => {
      digest.update(piece);
      sizeBytes += piece.length;
      return Promise.resolve();
    };
    const reply = await remote.download(url, expected, sink, signal);
    if (reply.kind === "done") return { sizeBytes, hash: digest.digest("hex") };
    // The gate has waited. A file host that fails on one file repeatedly counts as not returning it.
    if (reply.kind !== "later" || (reply.blame === "request" && tries >= TRIES_MAX)) return undefined;
  }
}

/** Failed downloads of one file before it counts as unavailable. */
const TRIES_MAX = 3;
