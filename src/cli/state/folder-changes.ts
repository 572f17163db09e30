import { accessSync, constants, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Config, type ConfigRequest, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { homeFolder } from "../../lib/home.ts";
import { shellWord } from "../../lib/shell-word.ts";
import { unknownSource } from "../../sync/scan/disk/source-path.ts";
import type { FolderChanges } from "../../sync/daemon/control/operations.ts";
import { openRules } from "../../sync/scan/rules/rules.ts";
import { countFolder, realFolder } from "../../sync/scan/folder-contents.ts";
import type { FolderRemoved, NewFolder, Obstacle } from "../../wire/daemon-folders.ts";
import { addFolders, checkFolder, removeFolder } from "./configured-folders.ts";
import type { ConfigChange } from "./config-change.ts";

export interface FolderChangesOptions {
  /** How the program reads the configuration. */
  readonly request: ConfigRequest;
  /** The folders come from the command line, so that a change of the configuration would not reach the daemon. */
  readonly areNamed: boolean;
  /** The configuration that is in force. */
  readonly config: () => Config;
  /** Reads the configuration again; see `Reloads`. */
  readonly reload: () => Promise<ConfigChange>;
  /** Notified before the reload that removes a folder, if its documents are deleted too. */
  readonly onDelete: (folder: string) => void;
}

type Changed = Omit<FolderRemoved, "documents">;

/**
 * Changes the folders of the daemon in this process, by its configuration file: what `kbsync add` and `kbsync remove` do from
 * another process.
 */
export function openFolderChanges(options: FolderChangesOptions): FolderChanges {
  const { request, config, reload } = options;
  const changeable = (): string => {
    const { file } = config();
    const obstacle = obstacleOf(options);
    if (file !== undefined && obstacle === null) return file;
    throw new KbsyncError(obstacle?.message ?? "", { code: "folders_fixed", hint: obstacle?.hint });
  };
  const unchanged = (path: string): Changed => ({
    path,
    file: config().file ?? null,
    applied: [],
    obstacle: obstacleOf(options),
  });
  const changed = async (path: string, file: string): Promise<Changed> => {
    const { applied } = await reload();
    const others = applied.filter((change) => !change.startsWith(`source ${path} `));
    return { path, file, applied: others, obstacle: null };
  };
  return {
    add: async ({ dryRun, ...folder }, signal) => {
      const file = dryRun ? undefined : changeable();
      const path = expanded(folder.path);
      const real = await realFolder(path, signal).catch((error: unknown) => explainUnit(error, request.env));
      checkFolder(path, config().stateDir);
      const source = sourceOf(options, { ...folder, path });
      if (file === undefined) {
        const { absolutePath, collection: tier, ownerId } = source;
        const contents = await countFolder(absolutePath, openRules(source), signal);
        const preview = { ...contents, realPath: real === path ? null : real, tier, ownerId };
        return { ...unchanged(path), preview };
      }
      addFolders(file, [{ ...folder, path }], config().stateDir, request);
      return { ...(await changed(path, file)), preview: null };
    },
    remove: async ({ folder: path, documents, dryRun }) => {
      const sources = config().sources.map(({ absolutePath }) => absolutePath);
      if (!sources.includes(path)) throw unknownSource(path, sources);
      if (dryRun) return unchanged(path);
      const file = changeable();
      removeFolder(file, path, request);
      if (documents === "delete") options.onDelete(path);
      return changed(path, file);
    },
  };
}

/** The folder as a source in addition to those in force. Throws `source_known`, `source_overlap` and `config_invalid`. */
function sourceOf(
  { request, config }: FolderChangesOptions,
  { path, tier, ...folder }: NewFolder,
): Config["sources"][number] {
  const current = config().sources.map(({ absolutePath }) => ({ path: absolutePath }));
  if (current.some((each) => each.path === path))
    throw new KbsyncError(`${path} is synced already`, { code: "source_known", subject: path });
  const named = { ...folder, path, ...(tier && { collection: tier }) };
  const source = loadConfig({ ...request, folders: [...current, named] }).sources.at(-1);
  if (source === undefined) throw new Error("unreachable: one folder went in");
  return source;
}

/** Why this process cannot change its folders. */
function obstacleOf({ areNamed, config, request }: FolderChangesOptions): Obstacle | null {
  const { file, sources } = config();
  const folders = sources.map(({ absolutePath }) => shellWord(absolutePath)).join(" ");
  const hint = `\`kbsync init ${folders}\` writes a configuration. \`kbsync up\` without folders uses it, and folders can then be added while it runs.`;
  if (areNamed) return { message: "The folders of this daemon were named when it was started.", hint };
  if (file === undefined) return { message: "This daemon has no configuration to change.", hint };
  try {
    accessSync(dirname(realpathSync(file)), constants.W_OK);
    return null;
  } catch {
    const named = request.file === undefined ? "" : ` --config ${shellWord(file)}`;
    return {
      message: `This daemon may not write its configuration ${file}.`,
      hint: `\`kbsync add DIR${named}\` and \`kbsync remove DIR${named}\` change it, run by a user who may. The daemon takes the change at once.`,
    };
  }
}

/**
 * Explains a missing folder to a person: units of `kbsync service install` show the program only the folders that they were
 * made with.
 */
function explainUnit(error: unknown, env: ConfigRequest["env"]): never {
  const unit = env["KBSYNC_UNIT"] ?? "";
  if (!(error instanceof KbsyncError) || error.code !== "source_unusable" || unit === "") throw error;
  throw new KbsyncError(`${error.message} for this daemon`, {
    code: error.code,
    ...(error.subject !== undefined && { subject: error.subject }),
    hint: `Its unit ${unit} shows it only the folders that it was made with: \`kbsync add DIR\`, then \`kbsync service install\`.`,
    cause: error,
  });
}

/** Without `.`, `..` and repeated slashes, so that one folder has one name. */
function expanded(path: string): string {
  const isHome = path === "~" || path.startsWith("~/");
  return resolve(isHome ? join(homeFolder(`Write ${path} in full.`), path.slice(1)) : path);
}
