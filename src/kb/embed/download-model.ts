import { createHash } from "node:crypto";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fetch, type Response } from "undici";
import { z } from "zod";
import { openAgent } from "../../lib/proxy.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { ModelDownload } from "./known-models.ts";

/** The weights are the int8 ones: the large table of words of a multilingual model is quantised in them as well. */
const PATHS = ["config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model_quantized.onnx"];

const ListedFile = z.object({
  rfilename: z.string(),
  size: z.int().nonnegative(),
  /** The id that Git gives the content. */
  blobId: z.string(),
  /** Of large files, whose content Git does not have. */
  lfs: z.object({ sha256: z.string() }).optional(),
});
type ListedFile = z.infer<typeof ListedFile>;
const Repository = z.object({ sha: z.string(), siblings: z.array(ListedFile) });

interface Reach {
  /** Names the proxy. */
  readonly env: Parameters<typeof openAgent>[1];
  readonly signal: AbortSignal;
  /** Default: the public model hub. */
  readonly hubUrl?: string;
}

/**
 * Downloads a model into `folder`, which appears when each file has its checksum. Throws `model_download` if the hub does not
 * have what it takes.
 */
export async function downloadModel(
  { hubId, card }: ModelDownload,
  folder: string,
  { env, signal, hubUrl = "https://huggingface.co" }: Reach,
): Promise<void> {
  const part = `${folder}.part`;
  const origin = `${hubUrl}/${hubId}`;
  const dispatcher = openAgent({ headersTimeout: 30_000, bodyTimeout: 60_000 }, env);
  const get = async (url: string): Promise<Response> => {
    const answer = await fetch(url, { dispatcher, signal });
    if (answer.ok) return answer;
    throw new Error(`${url} answers with status ${answer.status}`);
  };
  try {
    // All files are of one revision.
    const list = await get(`${hubUrl}/api/models/${hubId}/revision/main?blobs=true`);
    const { sha, siblings } = Repository.parse(await list.json());
    for (const path of PATHS) {
      const file = siblings.find(({ rfilename }) => rfilename === path);
      if (file === undefined) throw new Error(`it has no ${path}`);
      await writeChecked(join(part, path), file, await get(`${origin}/resolve/${sha}/${path}`));
    }
    for (const [path, content] of Object.entries(card))
      await writeFile(join(part, path), JSON.stringify(content));
    await rename(part, folder);
  } catch (cause) {
    signal.throwIfAborted();
    if (codeOf(cause) === "ENOSPC") throw cause;
    throw new KbsyncError(`cannot get the model from ${origin}: ${causeOf(cause)}`, {
      code: "model_download",
      subject: origin,
      retryable: true,
      hint: `Nothing was changed. Without access to the hub, copy the repository ${hubId} to a folder and name that: \`kbsync models FOLDER\`.`,
      cause,
    });
  } finally {
    await dispatcher.destroy();
    await rm(part, { recursive: true, force: true });
  }
}

async function writeChecked(
  target: string,
  { rfilename, size, blobId, lfs }: ListedFile,
  { body }: Response,
): Promise<void> {
  // Git hashes a header before the content.
  const hash = lfs === undefined ? createHash("sha1").update(`blob ${size}\0`) : createHash("sha256");
  await mkdir(dirname(target), { recursive: true });
  await using file = await open(target, "w");
  for await (const bytes of body ?? []) {
    hash.update(bytes);
    await file.writeFile(bytes);
  }
  await file.sync();
  if (hash.digest("hex") !== (lfs?.sha256 ?? blobId)) throw new Error(`${rfilename} has another checksum`);
}

/** The innermost message: `fetch` alone says "fetch failed". */
function causeOf(error: unknown): string {
  return error instanceof Error && error.cause !== undefined ? causeOf(error.cause) : messageOf(error);
}
