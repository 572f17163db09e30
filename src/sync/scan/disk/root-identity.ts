import { statSync, type Stats } from "node:fs";
import { hash } from "node:crypto";
import { integerColumn } from "../../../lib/integer-column.ts";
import type { RootIdentity } from "../../plan/model.ts";

/**
 * The identity of a folder. A file system may give a removed folder's inode number to the next new folder at once. The
 * time of birth distinguishes the two where it exists.
 */
export function rootIdentityOf({
  dev: device,
  ino,
  birthtimeMs,
}: Pick<Stats, "dev" | "ino" | "birthtimeMs">): RootIdentity {
  const dev = integerColumn(device);
  if (!reportsBirthTime() || !(birthtimeMs > 0)) return { dev, ino: integerColumn(ino) };
  // 48 bits, so that it is a safe integer for SQLite and JavaScript.
  return { dev, ino: Number.parseInt(hash("sha256", `${ino} ${birthtimeMs}`).slice(0, 12), 16), born: true };
}

/** Returns the identity of the folder at a path; undefined if there is none, or it is inaccessible: an error proves nothing. */
export function rootIdentityAt(path: string): RootIdentity | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() === true ? rootIdentityOf(stats) : undefined;
  } catch {
    return undefined;
  }
}

let hasBirthTime: boolean | undefined;

/**
 * Whether times of birth are real. Without statx(2) (an old kernel, a sandbox), libuv returns the change time instead, which
 * moves. In any running system, the root folder's change time differs from its time of birth.
 */
export function reportsBirthTime(): boolean {
  if (hasBirthTime === undefined) {
    const { birthtimeMs, ctimeMs } = statSync("/");
    hasBirthTime = birthtimeMs !== ctimeMs;
  }
  return hasBirthTime;
}
