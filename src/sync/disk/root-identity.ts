import { statSync, type Stats } from "node:fs";
import { hash } from "node:crypto";
import { integerColumn } from "../../lib/integer-column.ts";
import type { RootIdentity } from "../plan/model.ts";

/**
 * Who a folder is. A file system gives the inode number of a removed folder to the next one that is made, often at once:
 * the time of birth tells the two apart, where it is kept.
 */
export function rootIdentityOf({
  dev: device,
  ino,
  birthtimeMs,
}: Pick<Stats, "dev" | "ino" | "birthtimeMs">): RootIdentity {
  const dev = integerColumn(device);
  if (!reportsBirthTime() || !(birthtimeMs > 0)) return { dev, ino: integerColumn(ino) };
  // 48 bits, so that it is a whole number for SQLite and for us.
  return { dev, ino: Number.parseInt(hash("sha256", `${ino} ${birthtimeMs}`).slice(0, 12), 16), born: true };
}

let told: boolean | undefined;

/**
 * Whether times of birth are real. Where statx(2) is not to be had (an old kernel, a sandbox), libuv puts the change
 * time in their place, which moves; the folder above all has another change time than birth in any system that runs.
 */
export function reportsBirthTime(): boolean {
  if (told === undefined) {
    const { birthtimeMs, ctimeMs } = statSync("/");
    told = birthtimeMs !== ctimeMs;
  }
  return told;
}
