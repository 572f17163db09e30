import { homedir } from "node:os";
import { KbsyncError } from "./failure.ts";

/**
 * Home folder of the user who runs the program. Throws `usage`, with the hint, where the system knows none: a unit's own
 * user has none where nothing tells the system of it (Debian's libnss-systemd), nor has a number in a container.
 */
export function homeFolder(hint: string): string {
  try {
    return homedir();
  } catch (error) {
    throw new KbsyncError("the user who runs this has no home folder", { code: "usage", hint, cause: error });
  }
}
