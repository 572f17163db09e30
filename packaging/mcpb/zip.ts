import { crc32 } from "node:zlib";

/** A file of an archive. */
export interface ZipEntry {
  /** ASCII, with slashes. */
  readonly name: string;
  readonly bytes: Buffer;
  readonly isProgram?: boolean;
}

/** Version 2.0 of the format, which has folders; made on Unix, so that the mode of files is kept. */
const VERSION = 20;
const MADE_ON_UNIX = (3 << 8) | VERSION;
/** 1980-01-01, the first day of the format: the same files make the same archive. */
const DATE = 0x21;

/**
 * Returns a ZIP archive of a few small files, uncompressed
 * (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
 */
export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, bytes, isProgram = false } of entries) {
    const facts = fields([
      [VERSION, 2],
      [0, 2],
      [0, 2],
      [0, 2],
      [DATE, 2],
      [crc32(bytes), 4],
      [bytes.length, 4],
      [bytes.length, 4],
      [name.length, 2],
      [0, 2],
    ]);
    const local = Buffer.concat([fields([[0x04034b50, 4]]), facts, Buffer.from(name), bytes]);
    const mode = 0o100000 | (isProgram ? 0o755 : 0o644);
    directory.push(
      fields([
        [0x02014b50, 4],
        [MADE_ON_UNIX, 2],
      ]),
      facts,
      fields([
        [0, 2],
        [0, 2],
        [0, 2],
        [(mode << 16) >>> 0, 4],
        [offset, 4],
      ]),
      Buffer.from(name),
    );
    files.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = fields([
    [0x06054b50, 4],
    [0, 2],
    [0, 2],
    [entries.length, 2],
    [entries.length, 2],
    [listed.length, 4],
    [offset, 4],
    [0, 2],
  ]);
  return Buffer.concat([...files, listed, end]);
}

/** Writes integers of a number of bytes each, little-endian. */
function fields(values: readonly (readonly [value: number, sizeBytes: number])[]): Buffer {
  return Buffer.concat(
    values.map(([value, sizeBytes]) => {
      const bytes = Buffer.alloc(sizeBytes);
      bytes.writeUIntLE(value, 0, sizeBytes);
      return bytes;
    }),
  );
}
