import type { FolderWarning } from "../../../wire/daemon-status.ts";
import { IGNORE_FILE, type UnreadableIgnore } from "./ignore-files.ts";
import type { DoubtfulPattern } from "./ignore-reader.ts";
import type { Rules } from "./rules.ts";

/** A problem of a changed mount or an ignore file. */
export interface FolderProblem extends FolderWarning {
  readonly code: "ignore_unreadable" | "ignore_doubtful" | "mount_changed";
  /** The mount, or the ignore file, relative to the source. */
  readonly file: string;
}

/** Returns the problems of the ignore files that a scan met. The first ones hold back the folder of their file. */
export function ignoreProblems(
  rules: Pick<Rules, "doubtfulPatterns" | "unreadableIgnoreFiles">,
): readonly FolderProblem[] {
  return [...rules.unreadableIgnoreFiles().map(unreadableProblem), ...rules.doubtfulPatterns().map(doubt)];
}

function unreadableProblem({ path, code, file = IGNORE_FILE, words }: UnreadableIgnore): FolderProblem {
  const where = path === "" ? "of this source" : "in its folder";
  return {
    code: "ignore_unreadable",
    file,
    path,
    reason: `${file} ${words}: what it leaves out is unknown, so nothing ${where} is sent or deleted`,
    remedy: `${code === "EACCES" ? LET_IN : MAKE_TEXT}. kbsync then continues by itself.`,
  };
}

const MAKE_TEXT = "Make it a text file that the user that kbsync runs as can read, or remove it";
/** A folder that nobody may enter hides whether it has an ignore file. */
const LET_IN = "Let the user that kbsync runs as read its folder, and the file";

function doubt({ file, line, text, readings }: DoubtfulPattern): FolderProblem {
  const read = readings.map((each) => `\`${each}\``).join(" and as ");
  const meaning =
    readings.length > 1
      ? `is read as ${read}, and leaves out what any of them matches`
      : "may match nothing, and then leaves nothing out";
  return {
    code: "ignore_doubtful",
    file,
    path: file,
    reason: `line ${line}, \`${text}\`, ${meaning}`,
    remedy:
      "Write it as in a .gitignore: / between folders, without quotes, braces or a comment behind it. \\ takes its meaning from the character after it.",
  };
}
