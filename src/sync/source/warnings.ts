import type { FolderWarning } from "../../wire/daemon-status.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath, Unreadable } from "../plan/model.ts";
import { type IgnoreProblem, ignoreProblems } from "../rules/ignore-problems.ts";
import type { Rules } from "../rules/rules.ts";
import { UNMOUNTED } from "../rules/sub-mounts.ts";

/** Returns the changed mounts of a source that its rules include. */
export function mountProblems({
  mounts,
  entersFolder,
  wants,
}: Pick<Rules, "mounts" | "entersFolder" | "wants">): readonly FolderWarning[] {
  return (mounts?.closed() ?? [])
    .filter(({ path }) => entersFolder(path).wanted || wants(path).wanted)
    .map(({ path, code }) => ({ path, reason: reasonOf(code), remedy: remedyOf(path, code) }));
}

/** Warns once about each changed mount below a source, and again if it was in order meanwhile. */
export function openMountWarnings(
  { source, entersFolder, wants }: Pick<Rules, "source" | "entersFolder" | "wants">,
  onWarning: (error: Error) => void,
): (closed: readonly Unreadable[]) => void {
  let warned: ReadonlySet<string> = new Set();
  return (closed) => {
    const current = new Set<string>();
    for (const { path, code } of closed) {
      if (!entersFolder(path).wanted && !wants(path).wanted) continue;
      const key = `${code} ${path}`;
      current.add(key);
      if (!warned.has(key)) onWarning(mountChanged(`${source.absolutePath}/${path}`, code));
    }
    warned = current;
  };
}

function mountChanged(path: string, code: string): KbsyncError {
  return new KbsyncError(`${path}: ${reasonOf(code)}; its documents stay unchanged at the service`, {
    code: "mount_changed",
    subject: path,
    retryable: true,
    hint: "kbsync continues by itself when the mount is as before. If the change is permanent, exclude the folder with `exclude`: its documents are then deleted.",
  });
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

/** Warns of the problems of a source's ignore files. */
export function openIgnoreWarnings(rules: Rules, onWarning: (error: Error) => void) {
  let warned = new Map<string, IgnoreProblem>();
  return {
    /**
     * Warns once about each problem that the last scan met, and again if it was gone meanwhile. `whole`: the scan read every
     * ignore file, so that what it did not report is in order.
     */
    update: (whole: boolean): void => {
      const current = new Map(whole ? [] : warned);
      for (const problem of ignoreProblems(rules)) {
        const key = `${problem.file} ${problem.reason}`;
        current.set(key, problem);
        if (!warned.has(key)) onWarning(warningOf(rules.source.absolutePath, problem));
      }
      warned = current;
    },
    current: (): readonly IgnoreProblem[] => [...warned.values()],
  };
}

function warningOf(root: string, { code, file, path, reason, remedy }: IgnoreProblem): KbsyncError {
  const subject = `${root}/${file}`;
  const folder = path === "" ? root : `${root}/${path}`;
  return new KbsyncError(`${folder}: ${reason}`, { code, subject, retryable: true, hint: remedy });
}
