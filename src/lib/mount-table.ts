/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)), as far as it is needed. */
export interface Mount {
  /** Its number: another one after it was mounted anew. */
  readonly id: number;
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
    const [id, , device, root, path] = line.split(" ");
    if (device === undefined || root === undefined || path === undefined) return [];
    return [{ id: Number(id), device, root: unescape(root), path: unescape(path) }];
  });
}

/** Spaces, tabs, line breaks and backslashes stand there in octal. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) =>
    String.fromCodePoint(Number.parseInt(octal, 8)),
  );
}
