import { statSync } from "node:fs";
import { KbsyncError, messageOf } from "./failure.ts";

/**
 * Whether something is at a path. Unlike `existsSync` it does not take what cannot be looked at for missing. Throws
 * `path_unseen`.
 */
export function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new KbsyncError(`${path} cannot be looked at: ${messageOf(cause)}`, {
      code: "path_unseen",
      subject: path,
      hint: "Run it as root, or as the user that kbsync runs as.",
      cause,
    });
  }
}
