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
import type { StoredFile } from "../store/files.ts";
import type { ImageFacts } from "./image-child.ts";
import type { ImageReader } from "./image-reader.ts";

/** Time for all fetches of a request together: a request holds one of few slots meanwhile. */
const FETCHES_TIMEOUT_MS = 60_000;

/** Most bytes of a request's rendered images, which stay in memory until the answer arrives. */
const RENDERED_BYTES_MAX = IMAGES_BYTES_MAX;

/** The source of an image of a request. */
export type ImageSource =
  | { readonly kind: "file"; readonly file: StoredFile; readonly field: string }
  | { readonly kind: "link"; readonly url: string; readonly field: string };

/** A loaded image. */
export interface ChatImage {
  /** Its address in answers. */
  readonly url: string;
  readonly file: StoredFile;
  /** Runs work that reads the image at a path, which is valid until the work ends. */
  readonly read: <T>(work: (path: string) => Promise<T>) => Promise<T>;
  /** Whether it was fetched for this request and is not in the store yet. */
  readonly isNew: boolean;
  readonly facts: ImageFacts;
  /** Index of its turn in the thread; undefined: it belongs to the question itself. */
  readonly turnAt?: number | undefined;
}

/** An image of the thread that is left out. */
export interface OmittedImage {
  readonly url: string;
  readonly reason: string;
}

/** The dependencies of reading images. */
export interface ImageParts {
  readonly kb: KnowledgeBase;
  readonly fetcher: Fetcher;
  readonly reader: ImageReader;
}

/** Checks the addresses of a request without fetching them. Removes duplicates. */
export async function findSources(
  kb: KnowledgeBase,
  accountId: string,
  userUrls: ChatBody["user_urls"],
): Promise<readonly ImageSource[]> {
  const sources = new Map<string, ImageSource>();
  for (const [at, { url: given }] of userUrls.entries()) {
    const field = `user_urls[${at}].url`;
    const source = await withField(field, () => findSource(kb, accountId, given, field));
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
 * Fetches and reads the images of a request. Fetched files are received and not saved; `onFetched` reports each at once, so
 * that the caller can remove it. Throws `images_too_large` when the bytes actually read exceed the limit.
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
  const deadline = AbortSignal.timeout(FETCHES_TIMEOUT_MS);
  const signal = AbortSignal.any([options.signal, deadline]);
  for (const source of sources) {
    options.signal.throwIfAborted();
    const { field } = source;
    const image = await withField(field, async (): Promise<ChatImage> => {
      if (source.kind === "link") {
        const limits = { bytesMax: left, signal };
        const { file, path } = await fetchImage(parts, accountId, source.url, limits, field, onFetched).catch(
          (error: unknown) => {
            options.signal.throwIfAborted();
            throw deadline.aborted ? tooSlow(field) : error;
          },
        );
        return {
          url: source.url,
          file,
          read: (work) => work(path),
          isNew: true,
          facts: await reader.inspect(path, file.mediaType, { ...options, tenant: [accountId] }),
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
 * Adds the images of a thread to those of the request, within the limits; newer ones take precedence. Returns them in the order in
 * which they came, those of the request last.
 */
export async function addThreadImages(
  parts: ImageParts,
  own: readonly ChatImage[],
  linked: readonly ThreadImage[],
  options: { readonly render: boolean; readonly signal: AbortSignal; readonly imagesMax: number },
): Promise<{ readonly images: readonly ChatImage[]; readonly leftOut: readonly OmittedImage[] }> {
  const images = [...own];
  const earlier: ChatImage[] = [];
  const leftOut: OmittedImage[] = [];
  const seen = new Set(own.map(({ file }) => file.sha256));
  let left = IMAGES_BYTES_MAX - own.reduce((sum, { file }) => sum + file.sizeBytes, 0);
  for (const { turnAt, ...file } of linked) {
    // A picture that was fetched or uploaded again counts once.
    if (seen.has(file.sha256)) continue;
    seen.add(file.sha256);
    const url = parts.kb.addresses.urlOf(file);
    if (file.sizeBytes > left || images.length >= options.imagesMax) {
      leftOut.push({ url, reason: OVER_LIMIT });
      continue;
    }
    try {
      const image = await storedImage(parts, file, options);
      if (renderedBytes([...images, image]) > RENDERED_BYTES_MAX) {
        leftOut.push({ url, reason: OVER_LIMIT });
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

const OVER_LIMIT = "newer images take up the limit";

/** Returns the bytes of rendered images. */
export function renderedBytes(images: readonly ChatImage[]): number {
  return images.reduce((sum, { facts }) => sum + (facts.rendered?.bytes.length ?? 0), 0);
}

async function storedImage(
  { kb, reader }: ImageParts,
  file: StoredFile,
  options: { readonly render: boolean; readonly signal: AbortSignal },
): Promise<ChatImage> {
  const tenant = [file.accountId];
  const read: ChatImage["read"] = (work) => kb.files.use(file, work);
  const facts = await read((path) => reader.inspect(path, file.mediaType, { ...options, tenant }));
  return { url: kb.addresses.urlOf(file), file, read, isNew: false, facts };
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
    ({ body }) => kb.files.receive(token, body, bytesMax, () => tooLarge(field)),
    { signal, tenant: [accountId] },
  );
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
    return pathname; // the escapes are invalid, so the name is literal
  }
}

function noImage(field: string, mediaType: string): Refusal {
  return new Refusal("unsupported_media_type", `${field}: expected an image, got ${mediaType}.`, {
    field,
    hint: "Accepted are PNG, JPEG, WebP, GIF, BMP and TIFF; the content decides.",
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
  const message = `${field}: the images are larger than ${RENDERED_BYTES_MAX} bytes together in the form that models accept.`;
  return new Refusal("images_too_large", message, { field, hint: "Send fewer of them, or smaller ones." });
}

function tooSlow(field: string): Refusal {
  const message = `${field}: the images of the request did not arrive within ${FETCHES_TIMEOUT_MS / 1000} s.`;
  return new Refusal("link_failed", message, { field });
}

/** Names the field of the request in failures of the work on an image. */
export async function withField<T>(field: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw invalidField(field, "the uploaded file no longer exists");
    if (!(error instanceof KbsyncError)) throw error;
    if (error instanceof Refusal && error.field === field) throw error;
    const message = `${field}: ${error.message.replace(/^url: /, "")}`;
    const facts = { field, ...(error.hint === undefined ? {} : { hint: error.hint }), cause: error };
    switch (error.code) {
      case "link_refused":
        throw new Refusal("link_refused", message, {
          ...facts,
          hint: error.hint ?? "The operator of the service can allow other addresses with kb.allowHosts.",
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
