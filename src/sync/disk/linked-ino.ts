import { hash } from "node:crypto";

/**
 * The inode number under which a file is known that is reached through links: its own, mixed with the links' (`mark`).
 * A file and a link to it would else share one, and a rename of either could not be told from a rename of the other.
 * With it a renamed link keeps its resource, and so do the files below a renamed link to a folder.
 */
export function linkedIno(mark: string, ino: number): number {
  // 48 bits, so that it is a whole number for SQLite and for us; 0 stands for a look that is unknown.
  return Number.parseInt(hash("sha256", `${mark} ${ino}`).slice(0, 12), 16) || 1;
}
