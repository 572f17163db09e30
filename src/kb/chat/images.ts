import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { IMAGES_BYTES_MAX } from "../../wire/chat.ts";
import type { ChatBody } from "../../wire/chat.ts";
import type { Fetcher } from "../fetch/fetcher.ts";
import { readLink } from "../fetch/link.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { newFileToken, safeFileName } from "../uploads/file-address.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";
import { issuedFile } from "../resources/source.ts";
import type { ThreadImage } from "../store/chat.ts";
import type { StoredFile } from "../store/records.ts";
import type { ImageFacts } from "./image-child.ts";
import type { ImageReader } from "./image-reader.ts";

/** Time for all fetches of a request together: each holds one of the few places where questions are answered. */
const FETCHES_TIMEOUT_MS = 60_000;

/** Most bytes of a request's images as models get them; they lie in memory until the answer is there. */
const RENDERED_BYTES_MAX = IMAGES_BYTES_MAX;

/** Where an image of a request is. */
export type ImageSource =
  | { readonly kind: "file"; readonly file: StoredFile; readonly field: string }
  | { readonly kind: "link"; readonly url: string; readonly field: string };

/** An image at hand. */
export interface ChatImage {
  /** As answers name it. */
  readonly url: string;
  readonly file: StoredFile;
  readonly path: string;
  /** Fetched for this request: the store does not know it yet. */
  readonly isNew: boolean;
  readonly facts: ImageFacts;
  /** The turn of the thread that it came with; undefined: the question itself. */
  readonly turnAt?: number | undefined;
}

/** An image of the thread that does not take part. */
export interface LeftOut {
  readonly url: string;
  readonly reason: string;
}

/** What images are read with. */
export interface ImageParts {
  readonly kb: KnowledgeBase;
  readonly fetcher: Fetcher;
  readonly reader: ImageReader;
}

/** Checks the addresses of a request as far as can be told without asking anybody for them. The same one twice is one. */
export async function findSources(
  kb: KnowledgeBase,
  accountId: string,
  userUrls: ChatBody["user_urls"],
): Promise<readonly ImageSource[]> {
  const sources = new Map<string, ImageSource>();
  for (const [at, { url: given }] of userUrls.entries()) {
    const field = `user_urls[${at}].url`;
    const source = await named(field, () => findSource(kb, accountId, given, field));
    sources.set(source.kind === "file" ? source.file.token : source.url, source);
  }
  return [...sources.values()];
}

async function findSource(
  kb: KnowledgeBase,
  accountId: string,
  given: string,
  field: string,
): Promise<ImageSource> {
  const parsed = URL.parse(given);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw invalidField(field, `expected an http or https address, got ${shown(given)}`);
  }
  const url = readLink(given);
  const address = kb.addresses.classify(url);
  if (address.kind === "elsewhere") return { kind: "link", url: given, field };
  const file = await issuedFile(kb, accountId, given, address.kind === "token" ? address.token : "");
  if (!file.mediaType.startsWith("image/")) throw noImage(field, file.mediaType);
  return { kind: "file", file, field };
}

/**
 * Brings the images of a request: fetched, counted, looked at. Those fetched lie in the file area's `incoming/`, and are
 * told to `onFetched` at once, for whoever has to put them away. Throws `images_too_large` over the bytes really read.
 */
export async function loadImages(
  parts: ImageParts,
  accountId: string,
  sources: readonly ImageSource[],
  options: { readonly render: boolean; readonly signal: AbortSignal },
  onFetched: (token: string) => void,
): Promise<readonly ChatImage[]> {
  const { reader } = parts;
  const images: ChatImage[] = [];
  let left = IMAGES_BYTES_MAX;
  const patience = AbortSignal.timeout(FETCHES_TIMEOUT_MS);
  const signal = AbortSignal.any([options.signal, patience]);
  for (const source of sources) {
    options.signal.throwIfAborted();
    const { field } = source;
    const image = await named(field, async (): Promise<ChatImage> => {
      if (source.kind === "link") {
        const limits = { bytesMax: left, signal };
        const { file, path } = await fetchImage(parts, accountId, source.url, limits, field, onFetched).catch(
          (error: unknown) => {
            options.signal.throwIfAborted();
            throw patience.aborted ? tooSlow(field) : error;
          },
        );
        return {
          url: source.url,
          file,
          path,
          isNew: true,
          facts: await reader.look(path, file.mediaType, { ...options, tenant: [accountId] }),
        };
      }
      const { file } = source;
      if (file.sizeBytes > left) throw tooLarge(field);
      return storedImage(parts, file, options);
    });
    left -= image.file.sizeBytes;
    images.push(image);
    if (renderedBytes(images) > RENDERED_BYTES_MAX) throw tooLargeRendered(field);
  }
  return images;
}

/**
 * Adds the images of a thread, as far as there is room beside those of the request itself; where there is not, the newest
 * stay. In the order in which they came, those of the request last.
 */
export async function addThreadImages(
  parts: ImageParts,
  own: readonly ChatImage[],
  linked: readonly ThreadImage[],
  options: { readonly render: boolean; readonly signal: AbortSignal; readonly imagesMax: number },
): Promise<{ readonly images: readonly ChatImage[]; readonly leftOut: readonly LeftOut[] }> {
  const images = [...own];
  const earlier: ChatImage[] = [];
  const leftOut: LeftOut[] = [];
  const here = new Set(own.map(({ file }) => file.sha256));
  let left = IMAGES_BYTES_MAX - own.reduce((sum, { file }) => sum + file.sizeBytes, 0);
  for (const { turnAt, ...file } of linked) {
    // The same picture fetched or uploaded again is the same one.
    if (here.has(file.sha256)) continue;
    here.add(file.sha256);
    const url = parts.kb.addresses.urlOf(file);
    if (file.sizeBytes > left || images.length >= options.imagesMax) {
      leftOut.push({ url, reason: NO_ROOM });
      continue;
    }
    try {
      const image = await storedImage(parts, file, options);
      if (renderedBytes([...images, image]) > RENDERED_BYTES_MAX) {
        leftOut.push({ url, reason: NO_ROOM });
        continue;
      }
      images.push(image);
      earlier.unshift({ ...image, turnAt });
      left -= file.sizeBytes;
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof KbsyncError)) throw error;
      leftOut.push({ url, reason: error.message });
    }
  }
  return { images: [...earlier, ...own], leftOut };
}

const NO_ROOM = "there is no room for it beside newer ones";

/** Bytes of images as models get them. */
export function renderedBytes(images: readonly ChatImage[]): number {
  return images.reduce((sum, { facts }) => sum + (facts.rendered?.bytes.length ?? 0), 0);
}

async function storedImage(
  { kb, reader }: ImageParts,
  file: StoredFile,
  options: { readonly render: boolean; readonly signal: AbortSignal },
): Promise<ChatImage> {
  const path = kb.files.path(file.token);
  const tenant = [file.accountId];
  const facts = await kb.files.use(file.token, () =>
    reader.look(path, file.mediaType, { ...options, tenant }),
  );
  return { url: kb.addresses.urlOf(file), file, path, isNew: false, facts };
}

async function fetchImage(
  { kb, fetcher }: ImageParts,
  accountId: string,
  given: string,
  { bytesMax, signal }: { readonly bytesMax: number; readonly signal: AbortSignal },
  field: string,
  onFetched: (token: string) => void,
): Promise<{ readonly file: StoredFile; readonly path: string }> {
  const url = readLink(given);
  const token = newFileToken();
  const received = await fetcher.fetch(
    url,
    undefined,
    ({ body }) => kb.files.receive(token, body, bytesMax, () => tooLarge(field)),
    { signal, tenant: [accountId] },
  );
  if (received === "unchanged") throw new Error("a server said that an image is unchanged, unasked");
  onFetched(token);
  const { path, sizeBytes, sha256 } = received;
  if (sizeBytes === 0) throw new Refusal("link_failed", `${field}: the answer is empty.`, { field });
  const mediaType = await detectMediaType(path);
  if (!mediaType.startsWith("image/")) throw noImage(field, mediaType);
  const name = safeFileName(decoded(url.pathname));
  return { file: { token, accountId, name, mediaType, sizeBytes, sha256, createdAt: nowIso(kb) }, path };
}

function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname; // no valid escapes: then it is a name as it stands
  }
}

function noImage(field: string, mediaType: string): Refusal {
  return new Refusal("unsupported_media_type", `${field}: expected an image, got ${mediaType}.`, {
    field,
    hint: "Taken are PNG, JPEG, WebP, GIF, BMP and TIFF; the bytes decide.",
  });
}

function tooLarge(field: string): Refusal {
  return new Refusal(
    "images_too_large",
    `${field}: expected images of at most ${IMAGES_BYTES_MAX} bytes together.`,
    { field },
  );
}

function tooLargeRendered(field: string): Refusal {
  const message = `${field}: the images are larger than ${RENDERED_BYTES_MAX} bytes together in the form that models take.`;
  return new Refusal("images_too_large", message, { field, hint: "Send fewer of them, or smaller ones." });
}

function tooSlow(field: string): Refusal {
  const message = `${field}: the images of the request did not arrive within ${FETCHES_TIMEOUT_MS / 1000} s.`;
  return new Refusal("link_failed", message, { field });
}

/** What failed with an image names the field that brought it. */
export async function named<T>(field: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw invalidField(field, "the uploaded file is no longer there");
    if (!(error instanceof KbsyncError)) throw error;
    if (error instanceof Refusal && error.field === field) throw error;
    const message = `${field}: ${error.message.replace(/^url: /, "")}`;
    const facts = { field, ...(error.hint === undefined ? {} : { hint: error.hint }), cause: error };
    switch (error.code) {
      case "link_refused":
        throw new Refusal("link_refused", message, {
          ...facts,
          hint: error.hint ?? "The operator of the service can allow other addresses with kb.fetch.allow.",
        });
      case "link_failed":
      case "unsupported_media_type":
      case "empty_file":
      case "image_too_large":
      case "damaged_image":
      case "extraction_memory":
      case "extraction_timeout":
      case "extraction_crashed":
      case "invalid_field":
        throw new Refusal(error.code, message, facts);
      default:
        throw error;
    }
  }
}
