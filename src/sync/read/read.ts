import { hash, createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import type { LocatedText } from "../../lib/markup/located-text.ts";
import { MAIL_TYPE } from "../../wire/constants.ts";
import { EMPTY_FILE, type Recipe, type ScanEntry } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { refusalBySize } from "../document/bounds.ts";
import { digestOf, fingerprint } from "../document/digest.ts";
import type { DocumentFields } from "../document/fields.ts";
import type { Container } from "../document/kinds.ts";
import { CHARS_MAX, convertDocument } from "../document/formats/convert.ts";
import type { SentText } from "../document/json-text.ts";
import { containerOf, isOle, kindOfName, mediaTypeOf, type NamedKind } from "../document/kinds.ts";
import { linkedIno } from "../disk/linked-ino.ts";
import { liesInside } from "../disk/file-location.ts";
import { reportsBirthTime } from "../disk/root-identity.ts";
import { composeRecipe, CONVERTER_VERSION } from "./recipe.ts";
import { addressOf } from "../document/shortcut.ts";
import { beginsBinary, decodeText } from "../document/text.ts";
import { nameText } from "../document/title.ts";

interface DocumentFacts {
  /** SHA-256 of the raw bytes, lower-case hex. */
  readonly hash: string;
  readonly sizeBytes: number;
  /** The file when it was read; newer than the scan's entry if it changed in between. */
  readonly entry: ScanEntry;
  /** When the file was created; absent where the file system does not record it. */
  readonly createdMs?: number;
  /** What the document states about itself. Default: nothing. */
  readonly fields?: DocumentFields;
  readonly recipe: Recipe;
}

/** A file that was read: everything that is needed to create its resource. */
export type SourceDocument = DocumentFacts &
  /** `digest`: of the content, as `digestOf` gives it. */
  (
    | {
        readonly kind: "content";
        readonly content: SentText;
        readonly digest: string;
        /** Where the file has the parts of a converted text. Default: unknown. */
        readonly locations?: LocatedText["locations"];
      }
    | { readonly kind: "link"; readonly url: string }
    /** The bytes are not stored in memory; the upload streams them. */
    | { readonly kind: "file"; readonly mediaType: string }
  );

/** The result of reading a file. */
export type ReadOutcome =
  | { readonly kind: "document"; readonly document: SourceDocument }
  /**
   * Nothing for a knowledge base: the kind is not supported, or the file is empty and not text. The reason is for a
   * person.
   */
  | { readonly kind: "skipped"; readonly reason: string }
  /** The file cannot become a resource until it changes. The reason is for a person. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The file changed while it was read: check it again. */
  | { readonly kind: "torn" }
  /** No regular file has this name any more, or another one was opened. */
  | { readonly kind: "gone" }
  /** The file exists and cannot be read; the system's error code. */
  | { readonly kind: "unreadable"; readonly code: string };

export interface ReadOptions {
  /** Cancels the reading of a large file, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** The service reads PDFs and images in uploaded mails, so mails that contain some are uploaded. Default: false. */
  readonly uploadsMails?: boolean;
  /** Hash under which the service has the file as an upload. While the hash is the same, the file stays an upload. */
  readonly uploadedHash?: string | undefined;
}

/** Files up to this size are read synchronously: four calls of 2 µs cost less than one promise. */
export const SMALL_BYTES = 256 * 1024;
/** Read size for larger files: at 1 MB, hashing runs at full speed and blocks the loop for a millisecond. */
const SLICE_BYTES = 1024 * 1024;

/** Follows no symbolic link, and does not wait for the writer of a FIFO. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Buffer for all small files: nothing else runs between reading a file and finishing with it. */
const scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);

/**
 * Reads a file and determines its kind by name and bytes, its hash, text, title and description. Holds text in memory (at
 * most `maxFileBytes`), but no PDF or image. A child process reads office documents, books, mails and pages. Throws only
 * the signal's reason and programming errors.
 */
export async function readDocument(
  absolutePath: string,
  entry: ScanEntry,
  rules: Rules,
  options: ReadOptions = {},
): Promise<ReadOutcome> {
  const named = kindOfName(entry.path);
  if (named.kind === "skipped") return named;
  const request: ReadRequest = { absolutePath: entry.link?.real ?? absolutePath, entry, named, rules };
  return asOutcome(async () => {
    const found = await readFile(request, entry.sizeBytes, options.signal);
    return found.kind === "enclosed" ? convert(request, found, options) : found;
  });
}

/** Like `readDocument`, for a file whose bytes are its text; undefined if a child process must read it. */
export async function readPlain(
  absolutePath: string,
  path: string,
  rules: Rules,
): Promise<ReadOutcome | undefined> {
  const named = kindOfName(path);
  if (named.kind === "skipped") return named;
  return asOutcome(async () => {
    const found = await readFile({ absolutePath, entry: { path }, named, rules }, SMALL_BYTES, undefined);
    return found.kind === "enclosed" ? undefined : found;
  });
}

async function readFile(
  request: ReadRequest,
  sizeBytes: number,
  signal: AbortSignal | undefined,
): Promise<ReadOutcome | Enclosed> {
  const small = sizeBytes <= SMALL_BYTES ? readSmall(request) : undefined;
  return small ?? readLarge(request, signal);
}

/** Turns the system's errors about a file into outcomes. */
async function asOutcome<T>(read: () => Promise<T>): Promise<T | ReadOutcome> {
  try {
    return await read();
  } catch (error) {
    const code = codeOf(error);
    // ELOOP: it has become a symbolic link. ENXIO: it is a socket.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "ENXIO")
      return { kind: "gone" };
    if (isSystemError(error)) return { kind: "unreadable", code: error.code };
    throw error;
  }
}

interface ReadRequest {
  readonly absolutePath: string;
  readonly entry: Pick<ScanEntry, "path" | "link">;
  readonly named: Exclude<NamedKind, { kind: "skipped" }>;
  readonly rules: Rules;
}

/** A document whose text must be extracted. */
interface Enclosed {
  readonly kind: "enclosed";
  readonly container: Container;
  readonly named: Exclude<ReadRequest["named"], { kind: "link" }>;
  readonly facts: Omit<DocumentFacts, "recipe">;
}

/** Returns undefined if the file has grown beyond the limit. */
function readSmall(request: ReadRequest): ReadOutcome | Enclosed | undefined {
  const fd = openSync(request.absolutePath, OPEN_FLAGS);
  try {
    const before = fstatSync(fd);
    if (!before.isFile()) return { kind: "gone" };
    if (!isInPlace(request, fd)) return { kind: "gone" };
    if (before.size > SMALL_BYTES) return undefined;
    let filled = 0;
    while (filled < before.size) {
      const got = readSync(fd, scratch, filled, before.size - filled, filled);
      if (got === 0) break;
      filled += got;
    }
    if (filled < before.size || differs(before, fstatSync(fd))) return { kind: "torn" };
    const bytes = scratch.subarray(0, filled);
    return interpret(request, before, undefined, bytes);
  } finally {
    closeSync(fd);
  }
}

async function readLarge(
  request: ReadRequest,
  signal: AbortSignal | undefined,
): Promise<ReadOutcome | Enclosed> {
  const handle = await open(request.absolutePath, OPEN_FLAGS);
  try {
    const before = await handle.stat();
    if (!before.isFile()) return { kind: "gone" };
    if (!isInPlace(request, handle.fd)) return { kind: "gone" };
    const refused = refuseBySize(request, before.size);
    if (refused !== undefined) return refused;

    const slice = Buffer.allocUnsafeSlow(Math.min(SLICE_BYTES, before.size));
    const head = slice.subarray(0, await fill(handle, slice, 0));
    const uploaded = mediaTypeOf(head) !== undefined || containerOf(request.named, head) !== undefined;
    const isText = request.named.kind === "link" || (request.named.kind === "content" && !beginsBinary(head));
    if (!uploaded && !isText) return interpret(request, before, "", head);

    // For a file that is uploaded or converted, the first slice is enough once every byte has been hashed.
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
    if (filled < before.size || differs(before, await handle.stat())) return { kind: "torn" };
    return interpret(request, before, hasher.digest("hex"), bytes);
  } finally {
    await handle.close();
  }
}

/** Reads at `position` until the buffer is full or the file ends. Returns the number of bytes read. */
async function fill(handle: FileHandle, buffer: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

function refuseBySize({ named, rules }: ReadRequest, sizeBytes: number): ReadOutcome | undefined {
  const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
  return reason === undefined ? undefined : { kind: "refused", reason };
}

/**
 * Creates a document from a file's bytes. If their hash is `known`, `bytes` may be only the beginning of a file that is
 * uploaded or converted.
 */
function interpret(
  request: ReadRequest,
  stats: Stats,
  known: string | undefined,
  bytes: Buffer,
): ReadOutcome | Enclosed {
  const { entry, named, rules } = request;
  const { path, link } = entry;
  const refused = refuseBySize(request, stats.size);
  if (refused !== undefined) return refused;
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  const ino = link === undefined ? integerColumn(stats.ino) : linkedIno(link.mark, stats.ino);
  const seen = { path, sizeBytes, mtimeMs, ctimeMs, ino, ...(link !== undefined && { link }) };
  const isBirthKnown = reportsBirthTime() && stats.birthtimeMs > 0;
  const facts = { sizeBytes, entry: seen, ...(isBirthKnown && { createdMs: stats.birthtimeMs }) };

  // An empty text is a document; an empty shortcut, PDF or image is not.
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
  const naming = nameText(decoded.text, named.format);
  const { fields } = naming;
  const recipe = composeRecipe(path, "content", naming, rules);
  const prints =
    known === undefined ? fingerprint(bytes, decoded.text) : { hash: known, digest: digestOf(decoded.text) };
  return {
    kind: "document",
    document: {
      ...facts,
      ...(fields !== undefined && { fields }),
      ...prints,
      kind: "content",
      content: decoded.text,
      recipe,
    },
  };
}

/** Why the bytes contradict a name that promises a PDF, image or office document. */
function contradiction(named: { kind: "file" | "office" }, bytes: Buffer): string {
  if (isOle(bytes)) {
    return "it is protected by a password, or in an Office format from before 2007: save it without a password in a current format";
  }
  const promised = named.kind === "file" ? "PDF or image, but its content is neither" : ENCLOSED_WORDS;
  return `its name says ${promised}`;
}
const ENCLOSED_WORDS = "office document or book, but its bytes are none";

/** Extracts the text of a document that was read and hashed. */
async function convert(
  { absolutePath, entry: { path }, rules }: ReadRequest,
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
        const { title, markdown: content, locations } = conversion;
        if (content === "") return { kind: "skipped", reason: NO_TEXT[container] };
        const naming = title === undefined ? {} : { title };
        const stated = conversion.fields === undefined ? facts : { ...facts, fields: conversion.fields };
        if (conversion.isBetterUploaded === true && (uploadsMails || uploadedHash === expected)) {
          const recipe = composeRecipe(path, "file", naming, rules, CONVERTER_VERSION);
          return { kind: "document", document: { ...stated, kind: "file", mediaType: MAIL_TYPE, recipe } };
        }
        const recipe = composeRecipe(path, "content", naming, rules, CONVERTER_VERSION);
        const text = { content, locations, digest: digestOf(content) };
        const document = { ...stated, kind: "content", ...text, recipe } as const;
        return { kind: "document", document };
      }
    }
  } catch (error) {
    if (!(error instanceof KbsyncError) || signal?.aborted === true) throw error;
    if (error.code === "refused") return { kind: "refused", reason: error.message };
    return { kind: "unreadable", code: error.code };
  }
}

/** Why a converted document yields nothing. */
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

function isInPlace({ entry: { path, link }, rules }: ReadRequest, fd: number): boolean {
  const root = rules.source.absolutePath;
  return liesInside(fd, { root, realRoot: rules.realRoot, path, ...(link !== undefined && { link }) });
}

/** Whether a file changed. The change time also reveals a write after which the old modification time was restored. */
function differs(before: Stats, after: Stats): boolean {
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
