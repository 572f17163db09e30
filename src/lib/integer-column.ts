import { hash } from "node:crypto";

/** SQLite integers have 64 bits, one of them the sign. */
const INTEGER_END = 2 ** 63;

/**
 * Maps an unsigned 64-bit number to a value that an integer column can hold. Some file systems use the upper half for
 * inodes (mergerfs, GlusterFS); a 48-bit hash replaces those. Smaller numbers stay unchanged.
 */
export function integerColumn(value: number): number {
  return value < INTEGER_END ? value : Number.parseInt(hash("sha256", String(value)).slice(0, 12), 16) || 1;
}
