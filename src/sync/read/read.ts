import { hash, createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import { MAIL_TYPE } from "../../wire/upload.ts";
import { EMPTY_FILE, type Recipe, type ScanEntry } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { refusalBySize } from "../document/bounds.ts";
import { digestOf, fingerprint } from "../document/digest.ts";
import type { Container } from "../document/kinds.ts";
import { CHARS_MAX, convertDocument } from "../document/formats/convert.ts";
import type { SentText } from "../document/json-text.ts";
import { containerOf, isOle, kindOfName, mediaTypeOf, type NamedKind } from "../document/kinds.ts";
import { linkedIno } from "../disk/linked-ino.ts";
import { liesInside } from "../disk/place.ts";
import { composeRecipe, CONVERTER_VERSION } from "./recipe.ts";
import { addressOf } from "../document/shortcut.ts";
import { beginsBinary, decodeText } from "../document/text.ts";
import { nameText } from "../document/title.ts";

interface DocumentFacts {
  /** SHA-256 of the raw bytes, lower-case hex. */
  readonly hash: string;
  readonly sizeBytes: number;
  /** The file as it was read; newer than the scan's when it changed in between. */
  readonly entry: ScanEntry;
  readonly recipe: Recipe;
}

/** A file, read and understood: what is needed to make a resource of it. */
export type SourceDocument = DocumentFacts &
  /** `digest`: of the content, as `digestOf` gives it. */
  (
    | { readonly kind: "content"; readonly content: SentText; readonly digest: string }
    | { readonly kind: "link"; readonly url: string }
    /** The bytes are not kept: they are streamed when they are uploaded. */
    | { readonly kind: "file"; readonly mediaType: string }
  );

/** What came of reading a file. */
export type ReadOutcome =
  | { readonly kind: "document"; readonly document: SourceDocument }
  /** There is nothing in it for a knowledge base: it is of no kind that is taken, or empty and no text; in words. */
  | { readonly kind: "skipped"; readonly reason: string }
  /** The file cannot become a resource until it changes; the reason in words. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The file changed while it was read: look at it again. */
  | { readonly kind: "torn" }
  /** There is no regular file of that name any more, or what was opened is not it. */
  | { readonly kind: "gone" }
  /** The file is there and cannot be read; the system's error code. */
  | { readonly kind: "unreadable"; readonly code: string };

export interface ReadOptions {
  /** Ends the reading of a large file: it throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** The service reads the PDFs and images in uploaded mails, so that mails with such are uploaded. Default: it does not. */
  readonly uploadsMails?: boolean;
  /** Hash under which the service has the file as an upload: while it stays the same, the file stays one. */
  readonly uploadedHash?: string | undefined;
}

/** Up to this size a file is read in one synchronous go: four calls of 2 µs cost less than one promise. */
export const SMALL_BYTES = 256 * 1024;
/** Reads of larger files: at 1 MB hashing runs at full speed and holds the loop for a millisecond. */
const SLICE_BYTES = 1024 * 1024;

/** Never through a symbolic link, never waiting for the other end of a pipe. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Small files are read into this one buffer: nothing else runs between reading it and being done with it. */
const scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);

/**
 * Reads a file and finds out what it is: kind by name and bytes, hash, text, title and description. Text is held in
 * memory (at most `maxFileBytes`), a PDF or image is not; an office document, book, mail or page is read by a child
 * process. Throws only for a signal or a mistake of ours.
 */
export async function readDocument(
  absolutePath: string,
  entry: ScanEntry,
  rules: Rules,
  options: ReadOptions = {},
): Promise<ReadOutcome> {
  const named = kindOfName(entry.path);
  if (named.kind === "skipped") return named;
  const asked: Asked = { absolutePath: entry.link?.real ?? absolutePath, entry, named, rules };
  return telling(async () => {
    const found = await look(asked, entry.sizeBytes, options.signal);
    return found.kind === "enclosed" ? convert(asked, found, options) : found;
  });
}

/** As `readDocument`, of a file whose bytes are its text; undefined where a child process has to read it. */
export async function readPlain(
  absolutePath: string,
  path: string,
  rules: Rules,
): Promise<ReadOutcome | undefined> {
  const named = kindOfName(path);
  if (named.kind === "skipped") return named;
  return telling(async () => {
    const found = await look({ absolutePath, entry: { path }, named, rules }, SMALL_BYTES, undefined);
    return found.kind === "enclosed" ? undefined : found;
  });
}

async function look(
  asked: Asked,
  sizeBytes: number,
  signal: AbortSignal | undefined,
): Promise<ReadOutcome | Enclosed> {
  const small = sizeBytes <= SMALL_BYTES ? readSmall(asked) : undefined;
  return small ?? readLarge(asked, signal);
}

/** What the system says of a file, told as an outcome. */
async function telling<T>(read: () => Promise<T>): Promise<T | ReadOutcome> {
  try {
    return await read();
  } catch (error) {
    const code = codeOf(error);
    // ELOOP: it is a symbolic link by now. ENXIO: a socket.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "ENXIO")
      return { kind: "gone" };
    if (isSystemError(error)) return { kind: "unreadable", code: error.code };
    throw error;
  }
}

interface Asked {
  readonly absolutePath: string;
  readonly entry: Pick<ScanEntry, "path" | "link">;
  readonly named: Exclude<NamedKind, { kind: "skipped" }>;
  readonly rules: Rules;
}

/** A document whose text is still to be taken out of it. */
interface Enclosed {
  readonly kind: "enclosed";
  readonly container: Container;
  readonly named: Exclude<Asked["named"], { kind: "link" }>;
  readonly facts: Omit<DocumentFacts, "recipe">;
}

/** Undefined: the file has grown beyond a small one. */
function readSmall(asked: Asked): ReadOutcome | Enclosed | undefined {
  const fd = openSync(asked.absolutePath, OPEN_FLAGS);
  try {
    const before = fstatSync(fd);
    if (!before.isFile()) return { kind: "gone" };
    if (!isPlaced(asked, fd)) return { kind: "gone" };
    if (before.size > SMALL_BYTES) return undefined;
    let filled = 0;
    while (filled < before.size) {
      const got = readSync(fd, scratch, filled, before.size - filled, filled);
      if (got === 0) break;
      filled += got;
    }
    if (filled < before.size || moved(before, fstatSync(fd))) return { kind: "torn" };
    const bytes = scratch.subarray(0, filled);
    return understand(asked, before, undefined, bytes);
  } finally {
    closeSync(fd);
  }
}

async function readLarge(asked: Asked, signal: AbortSignal | undefined): Promise<ReadOutcome | Enclosed> {
  const handle = await open(asked.absolutePath, OPEN_FLAGS);
  try {
    const before = await handle.stat();
    if (!before.isFile()) return { kind: "gone" };
    if (!isPlaced(asked, handle.fd)) return { kind: "gone" };
    const refused = refuseBySize(asked, before.size);
    if (refused !== undefined) return refused;

    const slice = Buffer.allocUnsafeSlow(Math.min(SLICE_BYTES, before.size));
    const head = slice.subarray(0, await fill(handle, slice, 0));
    const uploaded = mediaTypeOf(head) !== undefined || containerOf(asked.named, head) !== undefined;
    const isText = asked.named.kind === "link" || (asked.named.kind === "content" && !beginsBinary(head));
    if (!uploaded && !isText) return understand(asked, before, "", head);

    // Of a file to be uploaded, or to be read elsewhere, the first slice is enough, once every byte has been hashed.
    const bytes = uploaded ? Buffer.from(head) : Buffer.allocUnsafeSlow(before.size);
    if (!uploaded) head.copy(bytes);
    const hasher = createHash("sha256").update(head);
    let filled = head.length;
    while (filled < before.size) {
      signal?.throwIfAborted();
      const rest = Math.min(SLICE_BYTES, before.size - filled);
      const into = uploaded ? slice.subarray(0, rest) : bytes.subarray(filled, filled + rest);
      const got = await fill(handle, into, filled);
      if (got === 0) break;
      hasher.update(into.subarray(0, got));
      filled += got;
    }
    if (filled < before.size || moved(before, await handle.stat())) return { kind: "torn" };
    return understand(asked, before, hasher.digest("hex"), bytes);
  } finally {
    await handle.close();
  }
}

/** Reads at `position` until the buffer is full or the file ends; the number of bytes read. */
async function fill(handle: FileHandle, buffer: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

function refuseBySize({ named, rules }: Asked, sizeBytes: number): ReadOutcome | undefined {
  const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
  return reason === undefined ? undefined : { kind: "refused", reason };
}

/**
 * Makes a document of a file's bytes. Where their hash is `known`, `bytes` may be the beginning only of a file to be
 * uploaded, or of one to be read by a child process.
 */
function understand(
  asked: Asked,
  stats: Stats,
  known: string | undefined,
  bytes: Buffer,
): ReadOutcome | Enclosed {
  const { entry, named, rules } = asked;
  const { path, link } = entry;
  const refused = refuseBySize(asked, stats.size);
  if (refused !== undefined) return refused;
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  const ino = link === undefined ? integerColumn(stats.ino) : linkedIno(link.mark, stats.ino);
  const seen = { path, sizeBytes, mtimeMs, ctimeMs, ino, ...(link !== undefined && { link }) };
  const facts = { sizeBytes, entry: seen };

  // An empty text is a text; an empty shortcut, PDF or image is none.
  if (sizeBytes === 0 && named.kind !== "content") return { kind: "skipped", reason: EMPTY_FILE };
  if (named.kind === "link") {
    const url = addressOf(bytes, named.format);
    if (url === undefined) return { kind: "refused", reason: "the shortcut holds no http or https address" };
    const recipe = composeRecipe(path, "link", {}, rules);
    return {
      kind: "document",
      document: { ...facts, hash: known ?? hash("sha256", bytes), kind: "link", url, recipe },
    };
  }

  const mediaType = mediaTypeOf(bytes);
  if (mediaType !== undefined) {
    const recipe = composeRecipe(path, "file", {}, rules);
    return {
      kind: "document",
      document: { ...facts, hash: known ?? hash("sha256", bytes), kind: "file", mediaType, recipe },
    };
  }
  const container = sizeBytes === 0 ? undefined : containerOf(named, bytes);
  if (container !== undefined)
    return { kind: "enclosed", container, named, facts: { ...facts, hash: known ?? hash("sha256", bytes) } };
  if (named.kind !== "content") return { kind: "refused", reason: contradiction(named, bytes) };

  const decoded = decodeText(bytes);
  if (decoded.kind === "binary") return { kind: "skipped", reason: decoded.reason };
  if (decoded.kind === "unknown") return { kind: "refused", reason: decoded.reason };
  const recipe = composeRecipe(path, "content", nameText(decoded.text, named.format), rules);
  const prints =
    known === undefined ? fingerprint(bytes, decoded.text) : { hash: known, digest: digestOf(decoded.text) };
  return {
    kind: "document",
    document: { ...facts, ...prints, kind: "content", content: decoded.text, recipe },
  };
}

/** Why a name that promises a PDF, image or office document is not kept by the bytes. */
function contradiction(named: { kind: "file" | "office" }, bytes: Buffer): string {
  if (isOle(bytes)) {
    return "it is behind a password, or of an office format from before 2007: save it without a password in a format of today";
  }
  const promised = named.kind === "file" ? "PDF or image, but its bytes are neither" : ENCLOSED_WORDS;
  return `its name says ${promised}`;
}
const ENCLOSED_WORDS = "office document or book, but its bytes are none";

/** Has the text taken out of a document that was read and hashed. */
async function convert(
  { absolutePath, entry: { path }, rules }: Asked,
  { container, named, facts }: Enclosed,
  { signal, uploadsMails = false, uploadedHash }: ReadOptions,
): Promise<ReadOutcome> {
  const { hash: expected, sizeBytes } = facts;
  const request = { path: absolutePath, container, hash: expected, sizeBytes, charsMax: CHARS_MAX };
  try {
    const conversion = await convertDocument(request, signal);
    switch (conversion.kind) {
      case "changed":
        return { kind: "torn" };
      case "unknown":
        return named.kind === "content"
          ? { kind: "skipped", reason: "a zip archive: no text is taken from it" }
          : { kind: "refused", reason: contradiction(named, Buffer.alloc(0)) };
      case "text": {
        const { title, markdown: content } = conversion;
        if (content === "") return { kind: "skipped", reason: NO_TEXT[container] };
        const naming = title === undefined ? {} : { title };
        if (conversion.isBetterUploaded === true && (uploadsMails || uploadedHash === expected)) {
          const recipe = composeRecipe(path, "file", naming, rules, CONVERTER_VERSION);
          return { kind: "document", document: { ...facts, kind: "file", mediaType: MAIL_TYPE, recipe } };
        }
        const recipe = composeRecipe(path, "content", naming, rules, CONVERTER_VERSION);
        const document = { ...facts, kind: "content", content, digest: digestOf(content), recipe } as const;
        return { kind: "document", document };
      }
    }
  } catch (error) {
    if (!(error instanceof KbsyncError) || signal?.aborted === true) throw error;
    if (error.code === "refused") return { kind: "refused", reason: error.message };
    return { kind: "unreadable", code: error.code };
  }
}

/** Why a document that was read gives nothing. */
const NO_TEXT: Readonly<Record<Container, string>> = {
  zip: "there is no text in the document",
  mail: "there is no text in the mail",
  csv: "there is no text in the table",
  tsv: "there is no text in the table",
  subtitles: "there is no text in the subtitles",
  notebook: "there is no text in the notebook",
  rtf: "there is no text in the document",
  html: "there is no text in the page: scripts may make it, and none are run",
};

function isPlaced({ entry: { path, link }, rules }: Asked, fd: number): boolean {
  const root = rules.source.absolutePath;
  return liesInside(fd, { root, realRoot: rules.realRoot, path, ...(link !== undefined && { link }) });
}

/** Whether a file changed between two looks. The change time also tells a write whose writer set the old mtime back. */
function moved(before: Stats, after: Stats): boolean {
  return (
    before.size !== after.size ||
    before.mtimeMs !== after.mtimeMs ||
    before.ctimeMs !== after.ctimeMs ||
    before.ino !== after.ino
  );
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException & { code: string } {
  return error instanceof Error && "syscall" in error && codeOf(error) !== undefined;
}
