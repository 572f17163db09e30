import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { request } from "undici";
import { z } from "zod";
import { filesOf } from "../../config/files.ts";
import type { Config } from "../../config/load.ts";
import { ALL_SCOPES, generateKey, hashKey, LOCAL_ACCOUNT, OWN_KEY_NAME } from "../../kb/keys/keys.ts";
import type { AskFolders } from "../../kb/resources/knowledge-base.ts";
import type { DaemonHandlers } from "../../kb/http/daemon-routes.ts";
import type { Service } from "../../kb/service.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { lockFolder } from "../../lib/folder-lock.ts";
import type { KnowledgePart } from "../../wire/agent.ts";
import { Tier } from "../../wire/primitives.ts";
import { TOP_K_DEFAULT } from "../../wire/search.ts";
import { credentialFile } from "../../system/credentials.ts";
import {
  ensureKey,
  forgetServiceAddress,
  makeServiceFolder,
  readKeyFile,
  readServiceAddress,
  type StateFolder,
  writeKeyFile,
  validKey,
  writeServiceAddress,
} from "../state/state-folder.ts";
import { openWithoutTls } from "../state/exposure.ts";
import { rememberedEmbedder } from "./earlier-models.ts";
import { languageModelOf, rerankerOf } from "./models.ts";
import { identityOf, openConfiguredStore, type OwnService } from "./store.ts";
import { startMetrics } from "../output/monitoring.ts";
import { programVersion } from "../output/version.ts";

/** A reachable service, in this process or another one. */
export interface ReachedService {
  readonly apiUrl: string;
  readonly dbUrl: string;
  /** Address of uploaded files, if different. */
  readonly resourcesUrl?: string;
  /** Address at which this program reads them, if `resourcesUrl` is for other machines. */
  readonly filesAt?: string;
  readonly pauthkey: string;
  /** Names the service in the ledger: the embedded one is the same on every port. */
  readonly identity: string;
  /** Metrics that a service in this process serves. */
  readonly metrics?: Metrics;
  /** Checks all parts of a service in this process; undefined for a remote one. */
  readonly probe?: () => Promise<void>;
  /** Sets the sources that the agent `default` of a service in this process reads; undefined for a remote one. */
  readonly readSources?: (sources: Config["sources"]) => void;
  /** Lets a service in this process ask its daemon about the folders; undefined: there is none. */
  readonly readFolders?: (ask: AskFolders | undefined) => void;
  /** Closes a service that this process started. Requests in flight may take `withinMs`, by default ten seconds. */
  close(withinMs?: number): Promise<void>;
}

/** The built console, which has the same relative path from `src` and from `dist`. */
const CONSOLE_FOLDER = fileURLToPath(new URL("../../../dist/console", import.meta.url));
/** Timeout of the health check; a healthy service on loopback answers within milliseconds. */
const HEALTH_TIMEOUT_MS = 2000;

export interface StartOptions {
  /** The operations of a daemon in this process. */
  readonly daemon?: DaemonHandlers;
  /** Waits for a database that does not answer until this signal, instead of failing. */
  readonly waitUntil?: AbortSignal;
}

/**
 * Starts the embedded service with the key of the state folder, and writes its address there. Throws `state_locked` if
 * another process serves from the folder, the errors of `openConfiguredStore`, and those of listening.
 */
export async function startEmbeddedService(
  config: Config,
  state: StateFolder,
  log: Logger,
  options: StartOptions = {},
): Promise<ReachedService> {
  if (!("embedded" in config.service)) {
    throw new KbsyncError("the configuration names a hosted service, so there is no service to run here", {
      code: "usage",
      hint: "`kbsync run` is the daemon alone.",
    });
  }
  const { host, publicUrl } = config.service;
  const unsafe = openWithoutTls(config.service);
  if (unsafe !== undefined) log.warn({ code: "service_without_tls", subject: publicUrl ?? host }, unsafe);
  makeServiceFolder(state);
  const lock = lockFolder(state.serviceDir, "service");
  let ownKeyHash: string | undefined;
  let { sources } = config;
  let askFolders: AskFolders | undefined;
  let service: OpenedService["service"] | undefined;
  const close = async (withinMs?: number): Promise<void> => {
    forgetServiceAddress(state);
    await service?.close(withinMs);
    lock.release();
  };
  try {
    const { service: opened, metrics } = await openStateService(config.kb, config.service, state, log, {
      unratedKey: () => ownKeyHash,
      sources: () => sources,
      askFolders: async (...asked) => askFolders?.(...asked),
      ...options,
    });
    service = opened;
    metrics.readService(() => opened.figures());
    const key = await ownKey(service, state, log);
    ownKeyHash = hashKey(key);
    const { url } = await service.start();
    writeServiceAddress(state, url);
    return {
      apiUrl: url,
      dbUrl: url,
      ...(publicUrl !== undefined && { resourcesUrl: publicUrl, filesAt: url }),
      pauthkey: key,
      identity: identityOf(config.service),
      metrics,
      probe: () => opened.probe(),
      readSources: (now) => (sources = now),
      readFolders: (ask) => (askFolders = ask),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type OpenedService = Awaited<ReturnType<typeof openStateService>>;

/** Opens the service on the data of a state folder, which is locked, and its metrics. */
async function openStateService(
  kb: Config["kb"],
  own: OwnService,
  state: StateFolder,
  log: Logger,
  live: StartOptions & {
    readonly unratedKey: () => string | undefined;
    readonly sources: () => Config["sources"];
    readonly askFolders: AskFolders;
  },
) {
  const { host, port, publicUrl, modelDir } = own;
  // Before the store opens, so that an invalid key file ends the program first.
  const memory = join(state.serviceDir, "embedding-models.json");
  const models = {
    ...rememberedEmbedder(memory, kb.embedding, modelDir, log),
    ...languageModelOf(kb.languageModel, log),
    ...rerankerOf(kb.reranker, log),
  };
  // Loaded lazily: it takes half of the startup time, which a daemon with a remote service saves.
  const [{ openService }, { readConsole }, metrics] = await Promise.all([
    import("../../kb/service.ts"),
    import("../../kb/console/pages.ts"),
    startMetrics(),
  ]);
  const store = await openConfiguredStore(own, state, {
    env: process.env,
    waitUntil: live.waitUntil,
    onAway: ({ code, message }) => log.warn({ code }, `${message}; waiting until it answers`),
    onBack: () => log.info("the database answers again"),
    onUpgraded: (words) => log.info(words),
    onProblem: (problem) => log.error({ err: problem }, problem.message),
  });
  try {
    const service = await openService({
      stateDir: state.serviceDir,
      store,
      sharesStore: own.database !== undefined,
      files: filesOf(own),
      host,
      port,
      ...(publicUrl !== undefined && { resourcesUrl: publicUrl }),
      unratedKey: live.unratedKey,
      askFolders: live.askFolders,
      ...models,
      log: log.child({ part: "service" }),
      version: programVersion(),
      observer: metrics.service,
      metrics: () => metrics.text(),
      budget: { ...kb.budget, embeddingPrice: kb.embedding.price },
      ...serviceRules(kb),
      chat: chatOptions(kb, live.sources),
      consoleFiles: readConsole(CONSOLE_FOLDER),
      ...(live.daemon && { daemon: live.daemon }),
    });
    return { service, metrics };
  } catch (error) {
    // The store's threads would keep the process alive.
    await store.close();
    throw error;
  }
}

/** Options of the service from the configuration. */
function serviceRules({ fetch, limits, ocr, resources, webhooks, retention }: Config["kb"]) {
  const { requestsPerMinute: perMinute, burst, ingests, connectionsPerAddress } = limits;
  return {
    fetchAllow: fetch.allow,
    webhookAllow: webhooks.allow,
    ocr,
    retention,
    ...(perMinute !== undefined && { rate: { perMinute, burst: burst ?? perMinute } }),
    filesNeedKey: resources.requireKey,
    limits: { ingests, connectionsPerAddress },
  };
}

/** Sources that `default` reads; each costs a search per question. Further ones need agents of their own. */
const DEFAULT_SOURCES_MAX = 50;

/** Options of chat from the configuration. `sources` returns the current sources at each question. */
function chatOptions({ agents, chat }: Config["kb"], sources: () => Config["sources"]) {
  const { models, contextTokens, timeoutSeconds } = chat;
  return {
    agents,
    defaultKnowledge: () => knowledgeOf(sources()),
    models,
    contextTokens,
    timeoutMs: timeoutSeconds * 1000,
  };
}

/** Knowledge of the agent `default`: all configured sources, and resources without an owner. */
function knowledgeOf(sources: Config["sources"]): KnowledgePart[] {
  const read = new Map<string, KnowledgePart>();
  for (const { collection: tier, ownerId: owner } of sources) {
    read.set(`${tier} ${owner}`, { tier, owner, top_k: TOP_K_DEFAULT });
  }
  const unowned = Tier.options.map((tier) => ({ tier, top_k: TOP_K_DEFAULT }));
  return [...[...read.values()].slice(0, DEFAULT_SOURCES_MAX), ...unowned];
}

/**
 * Returns the key of the state folder and registers it with every scope. Replaces a key that was revoked or rotated
 * instead of making it valid again.
 */
async function ownKey(
  service: Pick<Service, "knownKey" | "acceptKey">,
  state: StateFolder,
  log: Logger,
): Promise<string> {
  const grant = { account: LOCAL_ACCOUNT, name: OWN_KEY_NAME, scopes: ALL_SCOPES, expiresAt: null };
  const now = new Date().toISOString();
  const found = ensureKey(state, generateKey);
  const known = await service.knownKey(found);
  if (known === undefined || (known.revokedAt === null && known.expiresAt === null)) {
    await service.acceptKey(found, { ...grant, createdAt: now });
    return found;
  }
  const key = generateKey();
  // Registered first: a crash in between leaves an unused key rather than a folder with an invalid one.
  await service.acceptKey(key, { ...grant, createdAt: now });
  writeKeyFile(state, key);
  log.warn(
    { keyFile: state.keyFile },
    "the key of the state folder was revoked or rotated: it has a new one",
  );
  return key;
}

/**
 * Finds the configured service: the hosted one by its addresses, or the embedded one if it runs; else undefined. Throws
 * `key_missing` and `key_invalid`.
 */
export async function findService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
): Promise<ReachedService | undefined> {
  const close = (): Promise<void> => Promise.resolve();
  if (!("embedded" in config.service)) {
    const { apiUrl, dbUrl, resourcesUrl, pauthkeyFile } = config.service;
    return { apiUrl, dbUrl, resourcesUrl, pauthkey: hostedKey(pauthkeyFile, env), identity: dbUrl, close };
  }
  const address = readServiceAddress(state);
  if (address === undefined || !(await isHealthy(address.url))) return undefined;
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
 * may be in use and nobody else needs to reach a service that lives for one command. `port`: the one that a person asked for.
 */
export async function reachService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
  log: Logger,
  port = 0,
): Promise<ReachedService> {
  const found = await findService(config, state, env);
  if (found !== undefined) return found;
  const service = "embedded" in config.service ? { ...config.service, port } : config.service;
  return startEmbeddedService({ ...config, service }, state, log);
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

async function isHealthy(url: string): Promise<boolean> {
  try {
    const timeouts = { headersTimeout: HEALTH_TIMEOUT_MS, bodyTimeout: HEALTH_TIMEOUT_MS };
    const answer = await request(`${url}/v1/health`, {
      ...timeouts,
      signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS),
    });
    return Health.safeParse(await answer.body.json()).success;
  } catch {
    return false; // no server listens there, or another one
  }
}
