import { KbsyncError } from "../lib/failure.ts";
import type { Unreadable } from "./plan/model.ts";
import type { Rules } from "./rules.ts";
import { UNMOUNTED } from "./rules/sub-mounts.ts";

/** Warns once of each mount below a source that is not as it was, and again when that was over meanwhile. */
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
  const what =
    code === UNMOUNTED
      ? `what was mounted at ${path} is not mounted any more`
      : `something is mounted over ${path} that holds other files than before`;
  return new KbsyncError(`${what}: its documents stay as they are at the service`, {
    code: "mount_changed",
    subject: path,
    retryable: true,
    hint: "It goes on by itself when the mount is as it was. If that is to stay so, leave the folder out with `exclude`: its documents are deleted then.",
  });
}
