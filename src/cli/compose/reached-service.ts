import { dirname } from "node:path";
import type { Logger } from "pino";
import { z } from "zod";
import type { Config } from "../../config/load.ts";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { isAlive } from "../../lib/process-alive.ts";
import { askDaemon, silentProcess, TAKEN_MS } from "../../sync/daemon/control/client.ts";
import { credentialFile } from "../../system/credentials.ts";
import {
  readKeyFile,
  readServiceAddress,
  type ServiceAddress,
  type StateFolder,
  stateFolder,
  validKey,
} from "../state/state-folder.ts";
import { identityOf } from "./store.ts";
import { type ReachedService, startEmbeddedService } from "./embedded-service.ts";

/**
 * Finds the configured service: the hosted one by its addresses, or the embedded one if it runs; else undefined. Throws
 * `key_missing`, `key_invalid`, and `control_silent` if the embedded one runs and does not answer.
 */
export async function findService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
): Promise<ReachedService | undefined> {
  const close = (): Promise<void> => Promise.resolve();
  if ("apiUrl" in config.service) {
    const { apiUrl, dbUrl, resourcesUrl, pauthkeyFile } = config.service;
    return { apiUrl, dbUrl, resourcesUrl, pauthkey: hostedKey(pauthkeyFile, env), identity: dbUrl, close };
  }
  const address = readServiceAddress(state);
  if (address === undefined || !(await isHealthy(address))) return undefined;
  const key = readKeyFile(state.keyFile);
  if (key === undefined) {
    throw new KbsyncError(`the service's key file ${state.keyFile} is missing`, {
      code: "key_invalid",
      subject: state.keyFile,
    });
  }
  const { publicUrl } = config.service;
  return {
    apiUrl: address.url,
    dbUrl: address.url,
    ...(publicUrl !== undefined && { resourcesUrl: publicUrl, filesAt: address.url }),
    pauthkey: key,
    identity: identityOf(config.service),
    close,
  };
}

/** Finds the configured service, as `findService` does. Throws `service_unreachable` if an embedded one does not run. */
export async function runningService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
): Promise<ReachedService> {
  const found = await findService(config, state, env);
  if (found !== undefined) return found;
  throw new KbsyncError(`no service runs on the state folder ${state.path}`, {
    code: "service_unreachable",
    subject: state.path,
    retryable: true,
    hint: "Start it with `kbsync up`, `kbsync serve` or the system service; --state-dir or --config names another state folder.",
  });
}

/**
 * Finds the configured service. Starts an embedded one in this process unless it runs: on a free port, because the configured one
 * may be in use and nobody else needs to reach a service that lives for one command.
 */
export async function reachService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<ReachedService> {
  const found = await findService(config, state, env);
  if (found !== undefined) return found;
  const service = "apiUrl" in config.service ? config.service : { ...config.service, port: 0 };
  return startEmbeddedService({ ...config, service }, state, log);
}

/**
 * Returns `control_silent` for a daemon or service that holds a state folder and does not answer: it has to be resumed or
 * restarted. Undefined: it answers.
 */
export async function silentHolder(folder: string): Promise<unknown> {
  const { signal } = new AbortController();
  // The service locks a folder in the state folder.
  for (const stateDir of [folder, dirname(folder)]) {
    const address = readServiceAddress(stateFolder(stateDir));
    for (const ask of [
      async () => askDaemon(stateDir, "status", {}, { signal }),
      async () => address && isHealthy(address),
    ]) {
      const answer = await ask().catch((failure: unknown) => failure);
      if (codeOf(answer) === "control_silent") return answer;
    }
  }
  return undefined;
}

/** Name of the credential that holds the key of a hosted service. */
export const HOSTED_KEY_CREDENTIAL = "pauthkey";

function hostedKey(file: string | undefined, env: NodeJS.ProcessEnv): string {
  const named = env["KBSYNC_PAUTHKEY"];
  if (named !== undefined && named.trim() !== "")
    return validKey(named, "KBSYNC_PAUTHKEY is not a key", "KBSYNC_PAUTHKEY");
  // The service manager reads the file as root and passes it to this process, which may not read it itself.
  const given = credentialFile(env, HOSTED_KEY_CREDENTIAL) ?? file;
  const key = given === undefined ? undefined : readKeyFile(given);
  if (key !== undefined) return key;
  throw new KbsyncError(
    file === undefined ? "the hosted service needs a key" : `there is no key file ${file}`,
    {
      code: file === undefined ? "key_missing" : "key_invalid",
      subject: file ?? "KBSYNC_PAUTHKEY",
      hint: "Set KBSYNC_PAUTHKEY, or service.pauthkeyFile in the configuration.",
    },
  );
}

const Health = z.object({ success: z.literal(true), status: z.string() });

async function isHealthy({ url, pid }: ServiceAddress): Promise<boolean> {
  const { request } = await import("undici");
  const timeout = AbortSignal.timeout(TAKEN_MS);
  try {
    const answer = await request(`${url}/v1/health`, { signal: timeout });
    return Health.safeParse(await answer.body.json()).success;
  } catch {
    if (timeout.aborted && isAlive(pid)) throw silentProcess("service", pid);
    return false; // no server listens there, or another program does
  }
}
