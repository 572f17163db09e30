import { statSync } from "node:fs";
import { KbsyncError } from "../../lib/failure.ts";

/** Checks that a folder named by a person exists. Throws `source_unusable`. */
export function requireFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return;
  throw found === undefined
    ? new KbsyncError(`there is no folder ${path}`, {
        code: "source_unusable",
        subject: path,
        hint: "Check how it is spelled, or create it first.",
      })
    : new KbsyncError(`${path} is a file, not a folder`, {
        code: "source_unusable",
        subject: path,
        hint: "Name its folder, and select the file with `include` in the configuration.",
      });
}
