import type { Config, ResolvedSource } from "../../config/load.ts";
import type { Finding } from "../../lib/finding.ts";
import type { FolderWarning } from "../../wire/daemon-status.ts";
import { remoteFileSystem } from "../../sync/watch/network.ts";
import { counted, thousands } from "../../lib/counted.ts";
import type { Check } from "./check.ts";
import { problemOf, seeFolders, type SeenFolders } from "./folders.ts";

/** Checks that each source exists and that the current user can read it. */
export const sourcesCheck: Check = {
  name: "sources",
  run: async ({ config, quick, signal }) => {
    const { sources } = config;
    if (sources.length === 0)
      return { seen: "none: no folder was synced, and the configuration names none", findings: [] };
    const findings: Finding[] = [];
    let files = 0;
    for (const source of sources) {
      const seen = quick ? undefined : await seeFolders(source, signal);
      files += seen?.files ?? 0;
      const problem = quick ? problemOf(source.absolutePath) : seen?.problem;
      if (problem !== undefined) findings.push(rootFinding(source, problem.code));
      else if (seen !== undefined && seen.unreadable > 0) findings.push(partFinding(source, seen));
      for (const warning of seen?.warnings ?? []) findings.push(ignoreFinding(source, warning));
      const remote = problem === undefined ? remoteFileSystem(source.absolutePath) : undefined;
      if (remote !== undefined) findings.push(remoteFinding(source, remote));
    }
    const which = counted(sources.length, "folder");
    const what = quick ? which : `${which}, ${counted(files, "file")}`;
    return { seen: `${what}, as ${userWords()}${secretWords(config)}`, findings };
  },
};

/** Says what the check for secrets does not see. */
function secretWords({ sync }: Pick<Config, "sync">): string {
  return sync.blockSecrets
    ? "; the check for secrets does not read PDFs, pictures and other files that are sent as they are"
    : "";
}

/** Names the user of the check: a daemon under another user may see less. */
function userWords(): string {
  const uid = process.getuid?.();
  if (uid === 0) return "root sees them (the daemon's user may see less)";
  return `user ${uid ?? "unknown"} sees them`;
}

function rootFinding({ absolutePath: path }: ResolvedSource, code: string): Finding {
  const about = { check: "source-folder", level: "failure", subject: path } as const;
  switch (code) {
    case "ENOENT":
      return {
        ...about,
        message: `the folder ${path} is missing, so that nothing is sent for it and nothing deleted`,
        remedy: "Mount it or put it back, or take it out of the configuration's sources.",
      };
    case "ENOTDIR":
      return { ...about, message: `${path} is not a folder`, remedy: "Correct the configuration's sources." };
    default:
      return {
        ...about,
        message: `the folder ${path} cannot be listed (${code})`,
        remedy: `Give the user that runs kbsync the right to: setfacl -m u:USER:rX ${path}`,
      };
  }
}

function partFinding({ absolutePath: path }: ResolvedSource, seen: SeenFolders): Finding {
  const { unreadable, unreadablePaths } = seen;
  const rest = unreadable - unreadablePaths.length;
  const names = unreadablePaths.map((each) => (each === "" ? "the folder itself" : each)).join(", ");
  const more = rest > 0 ? ` and ${thousands(rest)} more` : "";
  return {
    check: "source-permissions",
    level: "warning",
    subject: path,
    message: `${path}: ${counted(unreadable, "file or folder", "files and folders")} cannot be read: ${names}${more}`,
    remedy: `Give the user that runs kbsync the right to read them (setfacl -R -m u:USER:rX ${path}), or exclude them.`,
  };
}

function ignoreFinding({ absolutePath }: ResolvedSource, { path, reason, remedy }: FolderWarning): Finding {
  const subject = path === "" ? absolutePath : `${absolutePath}/${path}`;
  return { check: "source-ignore-file", level: "warning", subject, message: `${subject}: ${reason}`, remedy };
}

function remoteFinding({ absolutePath: path }: ResolvedSource, kind: string): Finding {
  return {
    check: "source-network",
    level: "warning",
    subject: path,
    message: `${path} is on ${kind}, which does not report changes of other machines: it is scanned every 15 s`,
    remedy: "Nothing to do. Run kbsync on the machine that has the disk to see changes at once.",
  };
}
