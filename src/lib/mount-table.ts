/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)), reduced to the fields in use. */
export interface Mount {
  /** Mount id. Remounting assigns another one. */
  readonly id: number;
  /** Mount point. */
  readonly path: string;
  /** Mounted folder of the file system. Follows renames; ends in `//deleted` after removal. */
  readonly root: string;
  /** File system, as major and minor number. */
  readonly device: string;
}

/** Parses a mountinfo file in its order. Skips malformed lines. Pure. */
export function parseMounts(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [id, , device, root, path] = line.split(" ");
    if (device === undefined || root === undefined || path === undefined) return [];
    return [{ id: Number(id), device, root: unescape(root), path: unescape(path) }];
  });
}

/** The kernel writes spaces, tabs, line breaks and backslashes in octal. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) =>
    String.fromCodePoint(Number.parseInt(octal, 8)),
  );
}
