import { crc32 } from "node:zlib";

/** Bytes of the checksum. */
const SUM_BYTES = 4;

/** Thrown for bytes of an index that are not as they were written. */
export class DamagedIndex extends Error {
  readonly code = "INDEX_DAMAGED";
}

/** Appends a checksum. Without one a flipped bit could give wrong results, or a read without end. */
export function seal(bytes: Buffer): Buffer<ArrayBuffer> {
  const sum = Buffer.alloc(SUM_BYTES);
  sum.writeUInt32BE(crc32(bytes));
  return Buffer.concat([bytes, sum]);
}

/** Returns bytes without the checksum that `seal` appended, as a view. Throws `DamagedIndex` if it is wrong. */
export function unseal(sealed: Buffer, what: string): Buffer {
  if (!isSealed(sealed)) throw new DamagedIndex(`the checksum of ${what} is wrong`);
  return sealed.subarray(0, sealed.length - SUM_BYTES);
}

/** Reports whether bytes are as `seal` returned them. */
export function isSealed(bytes: Buffer): boolean {
  const end = bytes.length - SUM_BYTES;
  return end >= 0 && bytes.readUInt32BE(end) === crc32(bytes.subarray(0, end));
}
