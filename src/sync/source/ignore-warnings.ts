import { KbsyncError } from "../../lib/failure.ts";
import type { Unreadable } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { IGNORE_FILE, TOO_LARGE, UNSETTLED_LONG } from "../rules/ignore-files.ts";

/**
 * Warns once about each ignore file that cannot be read, and again if it was readable meanwhile. `whole`: the last scan
 * read every ignore file, so that any it did not report is readable.
 */
export function openIgnoreWarnings(
  { source, unreadableIgnoreFiles }: Pick<Rules, "source" | "unreadableIgnoreFiles">,
  onWarning: (error: Error) => void,
): (whole: boolean) => void {
  let warned = new Set<string>();
  return (whole) => {
    const current = new Set(whole ? [] : warned);
    for (const unreadable of unreadableIgnoreFiles()) {
      const key = `${unreadable.code} ${unreadable.path}`;
      current.add(key);
      if (!warned.has(key)) onWarning(ignoreUnreadable(source.absolutePath, unreadable));
    }
    warned = current;
  };
}

function ignoreUnreadable(root: string, { path, code }: Unreadable): KbsyncError {
  const file = path === "" ? `${root}/${IGNORE_FILE}` : `${root}/${path}/${IGNORE_FILE}`;
  const where = path === "" ? "of this source" : "in its folder";
  return new KbsyncError(
    `${file} ${reasonOf(code)}: what it leaves out is unknown, so nothing ${where} is sent or deleted`,
    {
      code: "ignore_unreadable",
      subject: file,
      retryable: true,
      hint: "Make it readable for the user that kbsync runs as (owner and mode), or remove it. kbsync then continues by itself.",
    },
  );
}

function reasonOf(code: string): string {
  if (code === TOO_LARGE) return "is larger than 1 MB and is not read";
  return code === UNSETTLED_LONG ? "has not stopped changing for a minute" : `cannot be read (${code})`;
}
