import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { filesOf } from "../../config/schema/files.ts";
import type { Config } from "../../config/load.ts";
import { ALL_SCOPES, generateKey, hashKey, LOCAL_ACCOUNT, OWN_KEY_NAME } from "../../kb/keys/keys.ts";
import type { DaemonHandlers } from "../../kb/http/routes/daemon-routes.ts";
import type { Service } from "../../kb/service.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { lockFolder } from "../../lib/folder-lock.ts";
import { packagePath } from "../../lib/package.ts";
import type { KnowledgePart } from "../../wire/agent.ts";
import { Tier } from "../../wire/primitives.ts";
import {
  ensureKey,
  forgetServiceAddress,
  makeServiceFolder,
  type StateFolder,
  writeKeyFile,
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
  /** Writes the address of a service in this process for the other commands, once; undefined for a remote one. */
  readonly publish?: () => void;
  /** Closes a service that this process started. Requests in flight may take `withinMs`, by default ten seconds. */
  close(withinMs?: number): Promise<void>;
}

/** The built console, also when the sources run directly. */
const CONSOLE_FOLDER = packagePath("dist/console");

/** Settings of the service that the program starts. */
export interface StartOptions {
  /** The operations of a daemon in this process. The caller publishes the service's address once the daemon is reachable. */
  readonly daemon?: DaemonHandlers;
  /** Waits for a database that does not answer until this signal, instead of failing. */
  readonly waitUntil?: AbortSignal;
}

/**
 * Starts the embedded service with the key of the state folder, and writes its address there unless it has a daemon. Throws
 * `state_locked` if another process serves from the folder, the errors of `openConfiguredStore`, and those of listening.
 */
export async function startEmbeddedService(
  config: Config,
  state: StateFolder,
  log: Logger,
  options: StartOptions = {},
): Promise<ReachedService> {
  if ("apiUrl" in config.service) {
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
  let service: OpenedService["service"] | undefined;
  const close = async (withinMs?: number): Promise<void> => {
    forgetServiceAddress(state);
    await service?.close(withinMs);
    lock.release();
  };
  try {
    // Of a killed process, which may have had the same pid: in a container each has 1.
    rmSync(state.addressFile, { force: true });
    const { service: opened, metrics } = await openStateService(config.kb, config.service, state, log, {
      unratedKey: () => ownKeyHash,
      sources: () => sources,
      ...options,
    });
    service = opened;
    metrics.readService(() => opened.figures());
    const key = await ownKey(service, state, log);
    ownKeyHash = hashKey(key);
    const { url } = await service.start();
    let isPublished = false;
    const publish = (): void => {
      if (!isPublished) writeServiceAddress(state, url);
      isPublished = true;
    };
    if (options.daemon === undefined) publish();
    return {
      apiUrl: url,
      dbUrl: url,
      ...(publicUrl !== undefined && { resourcesUrl: publicUrl, filesAt: url }),
      pauthkey: key,
      identity: identityOf(config.service),
      metrics,
      probe: () => opened.probe(),
      readSources: (now) => (sources = now),
      publish,
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
  },
) {
  const { host, port, publicUrl } = own;
  // Before the store opens, so that an invalid key file ends the program first.
  const memory = join(state.serviceDir, "embedding-models.json");
  const models = {
    ...rememberedEmbedder(memory, kb.embedding, log),
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
      ...models,
      log: log.child({ part: "service" }),
      version: programVersion(),
      observer: metrics.service,
      metrics: () => metrics.text(),
      ...serviceRules(kb, own),
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
function serviceRules({ allowHosts, limits, ocr, unusedFileDays }: Config["kb"], own: OwnService) {
  const { requestsPerMinute: perMinute } = limits;
  return {
    fetchAllow: allowHosts,
    webhookAllow: allowHosts,
    ocr,
    retention: { unusedFileDays },
    ...(perMinute !== undefined && { rate: { perMinute, burst: perMinute } }),
    filesNeedKey: own.requireKey === true,
    // All connections come from the proxy's address, and it limits those of its clients.
    ...(isBehindProxy(own) && { limits: { connectionsPerAddress: Infinity } }),
  };
}

/** Whether clients reach the service at another host than the one it listens on: through a proxy, or a port of a container. */
function isBehindProxy({ host, publicUrl }: OwnService): boolean {
  return publicUrl !== undefined && URL.parse(publicUrl)?.hostname !== host;
}

/** Sources that `default` reads; each costs a search per question. Further ones need agents of their own. */
const DEFAULT_SOURCES_MAX = 50;

/** Options of chat from the configuration. `sources` returns the current sources at each question. */
function chatOptions({ agents, languageModel }: Config["kb"], sources: () => Config["sources"]) {
  return {
    agents,
    defaultKnowledge: () => knowledgeOf(sources()),
    models: languageModel?.models ?? {},
  };
}

/** Knowledge of the agent `default`: all configured sources, and resources without an owner. */
function knowledgeOf(sources: Config["sources"]): KnowledgePart[] {
  const read = new Map<string, KnowledgePart>();
  for (const { collection: tier, ownerId: owner } of sources) {
    read.set(`${tier} ${owner}`, { tier, owner });
  }
  const unowned = Tier.options.map((tier) => ({ tier }));
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
