import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A word that occurs nowhere else, and that no stemmer shortens. */
export function canaryWord(): string {
  return `q${randomBytes(9).toString("hex")}q`;
}

/** Where the files of a folder still hold the middle of a canary, in UTF-8 or UTF-16. An index stores words without their beginning. */
export function findCanaries(folder: string, canaries: readonly string[]): string[] {
  return filesIn(folder).flatMap((path) => {
    const bytes = readFileSync(path);
    return canaries
      .filter((word) =>
        (["utf8", "utf16le"] as const).some((coding) =>
          bytes.includes(Buffer.from(word.slice(4, 16), coding)),
        ),
      )
      .map((word) => `${word} in ${path}`);
  });
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = statSync(path);
    if (stats.isDirectory()) return filesIn(path);
    return stats.isFile() ? [path] : [];
  });
}
