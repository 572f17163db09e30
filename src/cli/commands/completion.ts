import { existsSync } from "node:fs";
import { Argument, type Command, Option } from "commander";
import { request } from "undici";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { AgentsAnswer } from "../../wire/agent.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { findService } from "../compose/reached-service.ts";
import { commandTable } from "../manual/command-table.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { runningInstances } from "../state/instances.ts";
import { ledgerFolders } from "../state/sources.ts";
import { stateFolder } from "../state/state-folder.ts";

/** Arguments that shells complete with values from this machine. */
const COMPLETION_VALUES = ["sources", "agents"] as const;
type CompletionValues = (typeof COMPLETION_VALUES)[number];

/** A person waits after pressing a key. */
const TIMEOUT_MS = 1000;

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

interface CompletionOptions extends CommonOptions {
  readonly list?: CompletionValues;
}

/** `kbsync completion`: prints a shell's completion script for the program's commands and options. */
export function addCompletion(program: Command, context: Context): void {
  program
    .command("completion")
    .description("print the completion script of a shell")
    .addArgument(new Argument("[shell]", "the shell").choices(SHELLS))
    .addOption(
      new Option("--list <values>", "print the folders or agents that completions offer").choices(
        COMPLETION_VALUES,
      ),
    )
    .action(async (shell: Shell | undefined, options: CompletionOptions) => {
      if (options.list !== undefined) {
        context.stdout.write(await valueLines(context, options.list, options));
        return;
      }
      if (shell === undefined) {
        throw new KbsyncError(`name a shell: ${SHELLS.join(", ")}`, { code: "usage" });
      }
      context.stdout.write(await completionOf(program, shell));
    });
}

/** One value on each line. A name with a line end cannot be completed. */
async function valueLines(context: Context, kind: CompletionValues, options: CommonOptions): Promise<string> {
  const values =
    kind === "sources" ? completedSources(context, options) : await completedAgents(context, options);
  return values.flatMap((value) => (/[\n\r]/.test(value) ? [] : `${value}\n`)).join("");
}

/** Returns the folders that any running instance watches, and those of the configuration and of its state folder, each once. */
function completedSources(context: Context, options: CommonOptions): string[] {
  const { sources, stateDir } = loadConfig(configRequest(context, options));
  const running = runningInstances(context.env).flatMap(({ folders }) => folders);
  const configured = sources.map(({ absolutePath }) => absolutePath);
  return [...new Set([...running, ...configured, ...ledgerFolders(stateDir)])].toSorted();
}

/** Returns the ids of the agents of the services that run, each once. Starts none. */
async function completedAgents(context: Context, options: CommonOptions): Promise<string[]> {
  const named = configRequest(context, options);
  const requests = [
    named,
    ...runningInstances(context.env).map(({ config, stateDir }) =>
      configRequest(context, { stateDir, ...(config !== null && { config }) }),
    ),
  ];
  const found = await Promise.all(
    requests.map(async (each) => {
      const config = loadConfig(each);
      if (!existsSync(config.stateDir)) return [];
      const service = await findService(config, stateFolder(config.stateDir), context.env);
      if (service === undefined) return [];
      const { statusCode, body } = await request(`${service.apiUrl}${ROUTES.agents}`, {
        headers: { [KEY_HEADER]: service.pauthkey },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const answer = AgentsAnswer.safeParse(await body.json());
      return statusCode === 200 && answer.success ? answer.data.data.agents.map(({ _id: id }) => id) : [];
    }),
  );
  return [...new Set(found.flat())].toSorted();
}

/** The completion script of a shell, from the program's own table of commands. */
export async function completionOf(program: Command, shell: Shell): Promise<string> {
  const table = commandTable(program);
  switch (shell) {
    case "bash":
      return (await import("../manual/bash.ts")).bashCompletion(table);
    case "zsh":
      return (await import("../manual/zsh.ts")).zshCompletion(table);
    case "fish":
      return (await import("../manual/fish.ts")).fishCompletion(table);
  }
}
