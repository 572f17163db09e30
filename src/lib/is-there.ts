import { statSync } from "node:fs";
import { KbsyncError, messageOf } from "./failure.ts";

/**
 * Whether a path exists. Unlike `existsSync`, throws `path_unseen` for a path that cannot be checked.
 */
export function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new KbsyncError(`cannot check whether ${path} exists: ${messageOf(cause)}`, {
      code: "path_unseen",
      subject: path,
      hint: "Run it as root, or as the user that kbsync runs as.",
      cause,
    });
  }
}
