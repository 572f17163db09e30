import { hash } from "node:crypto";

/** SQLite's integers are of 64 bits with a sign. */
const INTEGER_END = 2 ** 63;

/**
 * A whole number as a column of integers can hold it: inode and device numbers have 64 bits without a sign, and some file
 * systems use the upper half (mergerfs, GlusterFS). Those are replaced by a hash of 48 bits; all others stay as they are.
 */
export function integerColumn(value: number): number {
  return value < INTEGER_END ? value : Number.parseInt(hash("sha256", String(value)).slice(0, 12), 16) || 1;
}
