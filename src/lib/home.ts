import { homedir } from "node:os";
import { KbsyncError } from "./failure.ts";

/**
 * Returns the home folder of the user who runs the program. Throws `usage` with the hint if the system knows none, as for
 * a unit's dynamic user without libnss-systemd, or for a bare uid in a container.
 */
export function homeFolder(hint: string): string {
  try {
    return homedir();
  } catch (error) {
    throw new KbsyncError("the user who runs this has no home folder", { code: "usage", hint, cause: error });
  }
}
