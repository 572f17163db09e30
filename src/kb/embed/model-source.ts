import { createReadStream, existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fetch, type Dispatcher } from "undici";
import { z } from "zod";

/** The public model hub. */
export const HUB_URL = "https://huggingface.co";
/** The file with the checksums of a folder, as `sha256sum` writes it. */
export const SUMS_FILE = "SHA256SUMS";

/** Largest accepted list of files: of these repositories it takes some kilobytes. */
const LIST_BYTES_MAX = 4 * 1024 * 1024;
/** Longest wait for a list. */
const LIST_TIMEOUT_MS = 30_000;
/** Longest time for a file: 120 MB over a slow line. */
const FILE_TIMEOUT_MS = 2 * 60 * 60_000;

/** A checksum: SHA-256 of the content, or the id that Git gives it, which the hub knows of small files. */
export interface Checksum {
  readonly kind: "sha256" | "git";
  readonly hex: string;
}

/** A file of a model at its source. */
export interface SourceFile {
  readonly sizeBytes?: number;
  /** Undefined only in a folder on this machine. */
  readonly checksum?: Checksum;
}

/** An origin that has the files of a model. */
export interface ModelSource {
  /** Address or folder, for messages. */
  readonly origin: string;
  /** By path. */
  readonly files: ReadonlyMap<string, SourceFile>;
  read(path: string): Promise<AsyncIterable<Uint8Array>>;
}

/** How to reach a source. */
export interface Reach {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

const HEX_256 = /^[0-9a-f]{64}$/;
const Repository = z.object({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z
    .array(
      z.object({
        rfilename: z.string(),
        size: z.int().nonnegative(),
        blobId: z.string().regex(/^[0-9a-f]{40}$/),
        lfs: z.object({ sha256: z.string().regex(HEX_256) }).optional(),
      }),
    )
    .max(10_000),
});

/** Opens a repository of the hub, or of a mirror with its API. Reads one revision, so that the files belong together. */
export async function openHub(hubUrl: string, hubId: string, reach: Reach): Promise<ModelSource> {
  const list = await readList(`${hubUrl}/api/models/${hubId}/revision/main?blobs=true`, reach);
  const { sha, siblings } = Repository.parse(JSON.parse(list));
  const files = siblings.map(({ rfilename, size, blobId, lfs }): [string, SourceFile] => [
    rfilename,
    {
      sizeBytes: size,
      checksum: lfs === undefined ? { kind: "git", hex: blobId } : { kind: "sha256", hex: lfs.sha256 },
    },
  ]);
  return httpSource(`${hubUrl}/${hubId}`, `${hubUrl}/${hubId}/resolve/${sha}`, new Map(files), reach);
}

/** Opens a folder of a web server. It needs a list of checksums, because nothing else says that a download is whole. */
export async function openWebFolder(url: string, reach: Reach): Promise<ModelSource> {
  const folder = url.replace(/\/+$/, "");
  const sums = readSums(await readList(`${folder}/${SUMS_FILE}`, reach));
  return httpSource(folder, folder, sums, reach);
}

/** Opens a folder of this machine. Checks its files against its list of checksums if it has one. */
export async function openFolder(folder: string, paths: readonly string[]): Promise<ModelSource> {
  const sumsFile = join(folder, SUMS_FILE);
  const sums = existsSync(sumsFile) ? readSums(await readFile(sumsFile, "utf8")) : new Map();
  const files = new Map<string, SourceFile>();
  for (const path of paths) {
    if (!existsSync(join(folder, path))) continue;
    files.set(path, { ...sums.get(path), sizeBytes: (await stat(join(folder, path))).size });
  }
  return { origin: folder, files, read: async (path) => createReadStream(join(folder, path)) };
}

function httpSource(
  origin: string,
  base: string,
  files: ReadonlyMap<string, SourceFile>,
  { dispatcher, signal }: Reach,
): ModelSource {
  return {
    origin,
    files,
    read: async (path) =>
      bodyOf(`${base}/${path}`, dispatcher, [signal, AbortSignal.timeout(FILE_TIMEOUT_MS)]),
  };
}

async function readList(url: string, { dispatcher, signal }: Reach): Promise<string> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  const body = await bodyOf(url, dispatcher, [signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  for await (const part of body) {
    sizeBytes += part.byteLength;
    if (sizeBytes > LIST_BYTES_MAX) throw new Error(`${url} is larger than ${LIST_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

async function bodyOf(
  url: string,
  dispatcher: Dispatcher,
  signals: AbortSignal[],
): Promise<AsyncIterable<Uint8Array>> {
  const answer = await fetch(url, { dispatcher, signal: AbortSignal.any(signals) });
  if (answer.ok && answer.body !== null) return answer.body;
  await answer.body?.cancel();
  throw new Error(`${url} answers with status ${answer.status}`);
}

/** Reads the lines of `sha256sum`; leaves out others. */
function readSums(text: string): Map<string, SourceFile> {
  const sums = new Map<string, SourceFile>();
  for (const line of text.split("\n")) {
    const [, hex, path] = /^([0-9a-fA-F]{64}) [ *](?:\.\/)?(.+?)\r?$/.exec(line) ?? [];
    if (hex !== undefined && path !== undefined)
      sums.set(path, { checksum: { kind: "sha256", hex: hex.toLowerCase() } });
  }
  return sums;
}
