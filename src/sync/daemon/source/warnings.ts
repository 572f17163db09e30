import type { FolderWarning } from "../../../wire/daemon-status.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import type { RelativePath } from "../../plan/model.ts";
import { type FolderProblem, ignoreProblems } from "../../scan/rules/ignore-problems.ts";
import type { Rules } from "../../scan/rules/rules.ts";
import { UNMOUNTED } from "../../scan/rules/sub-mounts.ts";

/** The problems that checks of a source meet: changed mounts, and ignore files that are unreadable or unclear. */
export type FolderWarnings = ReturnType<typeof openWarnings>;

/** Opens the problems of a source. There are none before the first check. */
export function openWarnings(
  rules: Pick<
    Rules,
    "source" | "mounts" | "entersFolder" | "wants" | "doubtfulPatterns" | "unreadableIgnoreFiles"
  >,
  onWarning: (error: Error) => void,
) {
  let warned = new Map<string, FolderProblem>();
  return {
    /**
     * Warns once about each problem that the last scan met, and again if it was gone meanwhile. `whole`: the scan read every
     * ignore file, so that what it did not report is in order.
     */
    update: (whole: boolean): void => {
      const left = [...warned].filter(([, { code }]) => !whole && code !== "mount_changed");
      const current = new Map(left);
      for (const problem of [...mountProblems(rules), ...ignoreProblems(rules)]) {
        const key = `${problem.file} ${problem.reason}`;
        current.set(key, problem);
        if (!warned.has(key)) onWarning(warningOf(rules.source.absolutePath, problem));
      }
      warned = current;
    },
    current: (): readonly FolderWarning[] =>
      [...warned.values()].map(({ path, reason, remedy }) => ({ path, reason, remedy })),
  };
}

/** Returns the changed mounts of a source that its rules include. */
function mountProblems({
  mounts,
  entersFolder,
  wants,
}: Pick<Rules, "mounts" | "entersFolder" | "wants">): readonly FolderProblem[] {
  return (mounts?.closed() ?? [])
    .filter(({ path }) => entersFolder(path).wanted || wants(path).wanted)
    .map(({ path, code }) => ({
      code: "mount_changed",
      file: path,
      path,
      reason: `${reasonOf(code)}; its documents stay unchanged at the service`,
      remedy: remedyOf(path, code),
    }));
}

function reasonOf(code: string): string {
  return code === UNMOUNTED
    ? "what was mounted there is no longer mounted"
    : "something is mounted over it that holds other files than before";
}

function remedyOf(path: RelativePath, code: string): string {
  const glob = `${path.replaceAll(/[\\*?[\]{}()!+@]/g, String.raw`\$&`)}/**`;
  const back = code === UNMOUNTED ? "mount it again" : "unmount that";
  return `${back} and it continues by itself; to delete its documents, add ${JSON.stringify(glob)} to the source's \`exclude\` and restart kbsync: \`kbsync approve\` does not act on it`;
}

function warningOf(root: string, { code, file, path, reason, remedy }: FolderProblem): KbsyncError {
  const subject = `${root}/${file}`;
  const folder = path === "" ? root : `${root}/${path}`;
  return new KbsyncError(`${folder}: ${reason}`, { code, subject, retryable: true, hint: remedy });
}
