import { existsSync } from "node:fs";
import { request } from "undici";
import { loadConfig } from "../../config/load.ts";
import { AgentsAnswer } from "../../wire/agent.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { findService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { runningInstances } from "../state/instances.ts";
import { ledgerFolders } from "../state/sources.ts";
import { stateFolder } from "../state/state-folder.ts";

/** What the shells complete with values of this machine. */
export const COMPLETION_VALUES = ["sources", "agents"] as const;
export type CompletionValues = (typeof COMPLETION_VALUES)[number];

/** A person waits for the key that they pressed. */
const TIMEOUT_MS = 1000;

/** Returns the folders that any running instance watches, and those of the configuration and of its state folder, each once. */
export function completedSources(context: Context, options: CommonOptions): string[] {
  const { sources, stateDir } = loadConfig(configRequest(context, options));
  const running = runningInstances(context.env).flatMap(({ folders }) => folders);
  const configured = sources.map(({ absolutePath }) => absolutePath);
  return [...new Set([...running, ...configured, ...ledgerFolders(stateDir)])].toSorted();
}

/** Returns the ids of the agents of the services that run, each once. Starts none. */
export async function completedAgents(context: Context, options: CommonOptions): Promise<string[]> {
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
