import { hash } from "node:crypto";

/**
 * The inode number stored for a file that is reached through links: its own, hashed with the links' (`mark`). Otherwise a
 * file and a link to it would share a number, and a rename of one could not be distinguished from a rename of the other. A
 * renamed link keeps its resource, and so do the files below a renamed link to a folder.
 */
export function linkedIno(mark: string, ino: number): number {
  // 48 bits, so that it is a safe integer for SQLite and JavaScript. 0 means unknown.
  return Number.parseInt(hash("sha256", `${mark} ${ino}`).slice(0, 12), 16) || 1;
}
