import yauzl, { type Entry, type ZipFile } from "yauzl";
import { foreignKind } from "../../lib/capped/foreign.ts";
import { ConversionRefusal } from "./refusal.ts";

/** The parts of a zipped document, read one by one. */
export interface Archive {
  /** Names of all parts, in the order of the archive. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /** Returns undefined if there is no such part. Throws a `ConversionRefusal` for one that unpacks to too much. */
  bytes(name: string): Promise<Buffer | undefined>;
  /** The same, decoded from UTF-8, or from UTF-16 with a byte order mark. */
  text(name: string): Promise<string | undefined>;
  close(): void;
}

/** An office document has some hundred parts, a book some thousand. */
const PARTS_MAX = 20_000;
/** The text of a long book is 5 MB; a sheet of a million cells takes 60 MB. */
const PART_BYTES_MAX = 128 * 1024 * 1024;
/** Maximum for all parts read from one document. */
const ALL_BYTES_MAX = 256 * 1024 * 1024;
/** Text compresses to a tenth, tables of equal cells to a hundredth. A higher ratio at this size indicates a bomb. */
const RATIO_MAX = 250;
const RATIO_BYTES = 16 * 1024 * 1024;

/**
 * Opens a zip archive and reads its list of parts without unpacking any. Uses the sizes in the list, and enforces them when
 * a part is unpacked. Throws a `ConversionRefusal` if the archive is damaged, encrypted, or would unpack to too much.
 */
export async function openArchive(bytes: Buffer): Promise<Archive> {
  const zip = await openZip(bytes);
  try {
    return archiveOf(zip, await listEntries(zip));
  } catch (error) {
    zip.close();
    throw error;
  }
}

function archiveOf(zip: ZipFile, entries: ReadonlyMap<string, Entry>): Archive {
  let unpacked = 0;
  const bytes = async (name: string): Promise<Buffer | undefined> => {
    const entry = entries.get(name);
    if (entry === undefined) return undefined;
    refuseBomb(entry);
    unpacked += entry.uncompressedSize;
    if (unpacked > ALL_BYTES_MAX) throw tooMuch(unpacked);
    return await unpack(zip, entry);
  };
  return {
    names: [...entries.keys()],
    has: (name) => entries.has(name),
    bytes,
    text: async (name) => {
      const found = await bytes(name);
      return found === undefined ? undefined : decode(found);
    },
    close: () => zip.close(),
  };
}

async function openZip(bytes: Buffer): Promise<ZipFile> {
  const { promise, resolve, reject } = Promise.withResolvers<ZipFile>();
  yauzl.fromBuffer(bytes, { lazyEntries: true, validateEntrySizes: true }, (error, zip) => {
    if (error === null) resolve(zip);
    else reject(damaged(error));
  });
  return await promise;
}

async function listEntries(zip: ZipFile): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > PARTS_MAX) {
    throw new ConversionRefusal(
      `it holds ${zip.entryCount} parts, more than any document has (${PARTS_MAX} at most)`,
    );
  }
  const entries = new Map<string, Entry>();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  zip.on("entry", (entry: Entry) => {
    // A repeated name targets readers that take the other part.
    if (!entries.has(entry.fileName)) entries.set(entry.fileName, entry);
    zip.readEntry();
  });
  zip.on("error", (error: Error) => reject(damaged(error)));
  zip.on("end", resolve);
  zip.readEntry();
  await promise;
  return entries;
}

/**
 * Refuses parts that a library would unpack itself, before it does. `isRead` selects those parts. The sizes are those that
 * the archive declares; a false one runs into the memory limit of the process.
 */
export async function refuseBombs(bytes: Buffer, isRead: (name: string) => boolean): Promise<void> {
  const zip = await openZip(bytes);
  try {
    let all = 0;
    for (const [name, entry] of await listEntries(zip)) {
      if (!isRead(name)) continue;
      refuseBomb(entry);
      all += entry.uncompressedSize;
    }
    if (all > ALL_BYTES_MAX) throw tooMuch(all);
  } finally {
    zip.close();
  }
}

function refuseBomb(entry: Entry): void {
  const { fileName, uncompressedSize, compressedSize } = entry;
  if (entry.isEncrypted()) throw new ConversionRefusal("it is protected by a password");
  const ratio = uncompressedSize / Math.max(compressedSize, 1);
  if (uncompressedSize > PART_BYTES_MAX || (uncompressedSize > RATIO_BYTES && ratio > RATIO_MAX)) {
    throw new ConversionRefusal(
      `its part ${JSON.stringify(fileName.slice(0, 100))} of ${compressedSize} bytes unpacks to ${uncompressedSize}: no document that people made does`,
    );
  }
}

async function unpack(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  zip.openReadStream(entry, (error, stream) => {
    if (error !== null) {
      reject(damaged(error));
      return;
    }
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("error", (cause: Error) => reject(damaged(cause)));
    stream.on("end", () => resolve(Buffer.concat(pieces)));
  });
  return await promise;
}

function decode(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  return new TextDecoder("utf-8").decode(bytes);
}

/** Converts any error of the library into a refusal, unless the machine failed. */
function damaged(error: Error): Error {
  if (foreignKind(error) === "machine") return error;
  return new ConversionRefusal("it is damaged: its archive cannot be unpacked", { cause: error });
}

function tooMuch(bytes: number): ConversionRefusal {
  return new ConversionRefusal(
    `it unpacks to ${bytes} bytes or more, over the limit of ${ALL_BYTES_MAX} for one document`,
  );
}
