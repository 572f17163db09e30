import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { filesOf } from "../../config/schema/files.ts";
import type { Config } from "../../config/load.ts";
import { parseConfig } from "../../config/config-file.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { isCovered, isShared } from "../../system/unit.ts";
import type { CommonOptions } from "../output/options.ts";

/** The options of `kbsync service`. */
export interface UnitRequest extends CommonOptions {
  /** A folder with a unit of its own. Default: the configuration's sources, in one unit. */
  readonly dir?: string;
  /** Whether the unit belongs to this user's own service manager. */
  readonly user?: boolean;
  readonly runAs?: string;
  readonly group?: readonly string[];
}

/** Permission of everyone to read a file, and to enter and list a folder. */
const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o005;
/** Permission of everyone, and of the group, to reach the contents of a folder. */
const OTHERS_PASS = 0o001;
const GROUP_PASS = 0o010;

/** Checks that the unit's user can use the files. Throws `usage`, `config_unreadable`. */
export function checkForOtherUser(
  file: string,
  config: Config,
  user: string | undefined,
  stateDir: string,
  groups: readonly string[],
): void {
  const { sources } = parseConfig(readFileSync(file, "utf8"), file);
  const home = sources.find(({ path }) => path === "~" || path.startsWith("~/"));
  if (home !== undefined) {
    throw new KbsyncError(
      `${file} names the source ${home.path}, and ~ is another folder for the unit's user`,
      {
        code: "usage",
        subject: file,
        hint: "Write the path in full.",
      },
    );
  }
  if (user !== undefined) return;
  if (config.stateDir !== stateDir) {
    throw new KbsyncError(
      `${file} names the state folder ${config.stateDir}, which the unit's own user cannot write`,
      {
        code: "usage",
        subject: config.stateDir,
        hint: `Leave stateDir out, and the unit gets ${stateDir}; or name the folder's owner with --run-as.`,
      },
    );
  }
  const files = filesOf(config.service);
  if (files?.kind === "folder") {
    throw new KbsyncError(`the unit's own user cannot write the folder of uploaded files ${files.path}`, {
      code: "usage",
      subject: files.path,
      hint: "Name the folder's owner with --run-as.",
    });
  }
  if ((statSync(file).mode & OTHERS_READ) === 0) {
    throw new KbsyncError(`the unit's own user cannot read ${file}`, {
      code: "config_unreadable",
      subject: file,
      hint: "`chmod o+r` makes it readable: keys are in files of their own, which systemd passes to the unit.",
    });
  }
  const closed = closedOnTheWay(file, config, groups);
  if (closed === undefined) return;
  throw new KbsyncError(`the unit's own user cannot read ${file}: the folder ${closed} is closed to others`, {
    code: "config_unreadable",
    subject: closed,
    hint: `\`chmod o+x ${closed}\` lets others reach what they may read in it; --group NAME lets the unit in by its group.`,
  });
}

/** The innermost folder on the path of a file that the unit's own user cannot enter. */
function closedOnTheWay(file: string, config: Config, groups: readonly string[]): string | undefined {
  const pass = groups.length > 0 ? OTHERS_PASS | GROUP_PASS : OTHERS_PASS;
  const folder = realpathSync(dirname(file));
  const sources = config.sources.map(({ absolutePath }) => absolutePath);
  const way = isCovered(folder, topFolders(), sources) ? [folder] : [folder, ...foldersAbove(folder)];
  return way.find((path) => (statSync(path).mode & pass) === 0);
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [above, ...foldersAbove(above)];
}

/** Refuses a configuration in a home folder: the unit sees the whole folder of its configuration. Throws `usage`. */
export function checkConfigFolder(file: string, sources: readonly string[]): void {
  const folder = dirname(file);
  // Both spellings, because a mount follows links.
  const paths = [folder, realpathSync(folder)];
  const around = { topFolders: topFolders(), homes: homes(), sources };
  if (!paths.some((path) => isShared(path, around))) return;
  throw new KbsyncError(
    `${file} lies in ${folder}: the unit must see the folder of its configuration, and would see everything in it`,
    {
      code: "usage",
      subject: file,
      hint: "Put it into a folder of its own, such as /etc/kbsync; relative paths in it then start there.",
    },
  );
}

/** Home folders of the machine's local users. */
function homes(): string[] {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.flatMap((line) => line.split(":")[5] ?? []).filter((path) => path !== "");
  } catch {
    return [homedir()]; // The system stores its users elsewhere.
  }
}

/** Warnings about sources that the unit's own user may be unable to read, or that do not exist. */
export function closedFolders(sources: readonly string[], { runAs, group = [] }: UnitRequest): string[] {
  return sources.flatMap((path) => {
    const gone = missing(path);
    if (gone.length > 0) return gone;
    const led = ledElsewhere(path);
    const { mode } = statSync(path);
    if (runAs !== undefined || group.length > 0 || (mode & OTHERS_ENTER) === OTHERS_ENTER) return led;
    return [
      ...led,
      `${path} is closed to others: --group NAME lets the unit in by a group, --run-as USER by its owner`,
    ];
  });
}

/**
 * Warns about a source behind a link: the unit shows the link's target as of its start, and does not notice another target
 * later.
 */
function ledElsewhere(path: string): string[] {
  const real = realpathSync(path);
  return real === path ? [] : [`${path} leads to ${real} by a link: name that folder itself under sources`];
}

/** Warns about a missing source. */
export function missing(path: string): string[] {
  return existsSync(path)
    ? []
    : [`${path} does not exist: the unit sees it after the next install or restart`];
}

/** Folders at the root of this machine's file system. */
export function topFolders(): string[] {
  return readdirSync("/", { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `/${name}`);
}
