/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)), as far as it is needed. */
export interface Mount {
  /** Where it is seen. */
  readonly path: string;
  /** What of its file system is seen there. It follows a folder that is renamed; one that was removed ends in `//deleted`. */
  readonly root: string;
  /** Which file system: major and minor number. */
  readonly device: string;
}

/** Reads the text of a mountinfo file, in its order. Lines that are none are left out. Pure. */
export function parseMounts(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [, , device, root, path] = line.split(" ");
    if (device === undefined || root === undefined || path === undefined) return [];
    return [{ device, root: unescape(root), path: unescape(path) }];
  });
}

/**
 * Which of the folders that are mounted by themselves show another folder now than before, each with its new root. One
 * that is not mounted by itself any more is not told. Pure.
 */
export function movedMounts(
  before: readonly Mount[],
  now: readonly Mount[],
  paths: readonly string[],
): { readonly path: string; readonly root: string }[] {
  return paths.flatMap((path) => {
    const was = uppermost(before, path);
    const is = uppermost(now, path);
    if (was === undefined || is === undefined || was.device !== is.device || was.root === is.root) return [];
    return [{ path, root: is.root }];
  });
}

/** The last one at a path lies over the others. */
function uppermost(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => mount.path === path);
}

/** Spaces, tabs, line breaks and backslashes stand there in octal. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) =>
    String.fromCodePoint(Number.parseInt(octal, 8)),
  );
}
