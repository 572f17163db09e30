import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { codeOf, isAbsence } from "../../../lib/failure.ts";
import type { ScanEntry } from "../../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { containerOf, kindOfName, mediaTypeOf } from "../../../formats/kinds.ts";
import { liesInside } from "../disk/file-location.ts";
import { beginsBinary } from "../../../formats/text.ts";
import type { ReadOptions, ReadOutcome, ReadRequest, Enclosed } from "./outcome.ts";
import { convert, interpret, refuseBySize } from "./interpretation.ts";

/** Files up to this size are read synchronously: four calls of 2 µs cost less than one promise. */
const SMALL_BYTES = 256 * 1024;
/** Bytes of small files that are read in one turn of the loop, which takes some milliseconds. */
const TURN_BYTES = 1024 * 1024;
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
  const request: ReadRequest = { absolutePath, entry, named, rules };
  return asOutcome(async () => {
    const found = await readFile(request, entry.sizeBytes, options.signal);
    return found.kind === "enclosed" ? convert(request, found, options) : found;
  });
}

/** This turn of the loop: the bytes of small files that were read in it, and its end, if any reading waits for that. */
const turn: { bytes: number; end: Promise<void> | undefined } = { bytes: 0, end: undefined };

/** Resolves when the turn of the loop has room for so many bytes. */
async function takeTurn(bytes: number): Promise<void> {
  while (turn.bytes >= TURN_BYTES) await (turn.end ??= endTurn());
  turn.bytes += bytes;
}

async function endTurn(): Promise<void> {
  await nextTurn();
  turn.bytes = 0;
  turn.end = undefined;
}

async function readFile(
  request: ReadRequest,
  sizeBytes: number,
  signal: AbortSignal | undefined,
): Promise<ReadOutcome | Enclosed> {
  if (sizeBytes > SMALL_BYTES) return readLarge(request, signal);
  await takeTurn(sizeBytes);
  return readSmall(request) ?? readLarge(request, signal);
}

/** Turns the system's errors about a file into outcomes. */
async function asOutcome<T>(read: () => Promise<T>): Promise<T | ReadOutcome> {
  try {
    return await read();
  } catch (error) {
    const code = codeOf(error);
    // ELOOP: it has become a symbolic link. ENXIO: it is a socket.
    if (isAbsence(error) || code === "ELOOP" || code === "ENXIO") return { kind: "gone" };
    if (isSystemError(error)) return { kind: "unreadable", code: error.code };
    throw error;
  }
}

/** Returns undefined if the file has grown beyond the limit. */
function readSmall(request: ReadRequest): ReadOutcome | Enclosed | undefined {
  const fd = openSync(request.absolutePath, OPEN_FLAGS);
  try {
    const before = fstatSync(fd);
    if (!before.isFile()) return { kind: "gone" };
    if (!isWithinSource(request, fd)) return { kind: "gone" };
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
    if (!isWithinSource(request, handle.fd)) return { kind: "gone" };
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

function isWithinSource({ entry: { path }, rules }: ReadRequest, fd: number): boolean {
  return liesInside(fd, { root: rules.source.absolutePath, realRoot: rules.realRoot, path });
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
