import type { Command } from "commander";
import { findConfigFile } from "../../config/config-file.ts";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Context } from "../output/context.ts";
import { completeCommand } from "../output/hint.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { type Instance, matchingInstances, runningInstances } from "./instances.ts";
import { ledgerFolders } from "./sources.ts";

/** Commands that start an instance, or need none. */
const NEED_NONE: ReadonlySet<string> = new Set([
  "up",
  "run",
  "serve",
  "service",
  "sync",
  "restore",
  "init",
  "doctor",
]);

/**
 * Chooses the running instance for a command if neither options nor environment name one: the one with the configuration of the
 * working folder, else the one that watches the working folder or a named path, else the only one. Sets the command's options
 * accordingly. Throws `instance_unclear` with the complete commands to choose from.
 */
export function useRunningInstance(context: Context, command: Command, args: readonly string[]): void {
  const group = command.parent?.parent === null ? command : (command.parent ?? command);
  const options = command.opts<CommonOptions>();
  const { KBSYNC_STATE_DIR: stateDir, STATE_DIRECTORY: unit } = context.env;
  if (NEED_NONE.has(group.name()) || [options.stateDir, stateDir, unit].some((named) => (named ?? "") !== ""))
    return;
  const running = runningInstances(context.env);
  if (running.length === 0) return;
  const request = configRequest(context, options);
  const file = findConfigFile(request);
  const found =
    file === undefined
      ? matching(context, running, command.args)
      : running.filter(({ config }) => config === file);
  // `serve` and `run` on one state folder count once, with the daemon's entry.
  const byState = new Map(
    found.toSorted((a, b) => a.folders.length - b.folders.length).map((each) => [each.stateDir, each]),
  );
  const [instance, ...others] = byState.values();
  if (instance === undefined) return;
  if (others.length > 0) throw unclear(context, [instance, ...others], args);
  command.setOptionValue("stateDir", instance.stateDir);
  if (instance.config !== null) command.setOptionValue("config", instance.config);
}

/** The default state folder counts too: what it synced is searchable without an instance. */
function matching(
  context: Context,
  running: readonly Instance[],
  paths: readonly string[],
): readonly Instance[] {
  const found = matchingInstances(running, context.cwd, paths);
  const { stateDir } = loadConfig(configRequest(context, {}));
  const isOwn = running.some((instance) => instance.stateDir === stateDir);
  const isSynced =
    !isOwn && ledgerFolders(stateDir).some((folder) => pathBelow(folder, context.cwd) !== undefined);
  return isSynced ? [] : found;
}

function unclear(context: Context, instances: readonly Instance[], args: readonly string[]): KbsyncError {
  const typed = args.map(shellWord).join(" ");
  const lines = instances.map(({ command, config, stateDir, folders }) => {
    const configured = config === null ? "" : ` --config ${shellWord(config)}`;
    const watched = folders.length === 0 ? "" : ` on ${folders.join(", ")}`;
    const line = `kbsync ${typed}${configured} --state-dir ${shellWord(stateDir)}`;
    return `  kbsync ${command}${watched}:\n    ${completeCommand(line, context.invocation)}`;
  });
  return new KbsyncError(
    `${instances.length} instances of kbsync are running, and none of them belongs to ${context.cwd}`,
    {
      code: "instance_unclear",
      subject: context.cwd,
      hint: `Choose one:\n${lines.join("\n")}`,
    },
  );
}
