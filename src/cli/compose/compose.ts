import { join } from "node:path";
import type { Logger } from "pino";
import { request } from "undici";
import { z } from "zod";
import type { DaemonActivity } from "../../wire/daemon.ts";
import type { Config } from "../../config/load.ts";
import { ALL_SCOPES, generateKey, hashKey, LOCAL_ACCOUNT, OWN_KEY_NAME } from "../../kb/keys/keys.ts";
import type { Service } from "../../kb/service.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { lockFolder } from "../../lib/folder-lock.ts";
import type { KnowledgePart } from "../../wire/agent.ts";
import { Tier } from "../../wire/primitives.ts";
import { TOP_K_DEFAULT } from "../../wire/search.ts";
import { type Daemon, type DaemonOptions, openDaemon } from "../../sync/daemon.ts";
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
import { startMetrics } from "../output/monitoring.ts";
import { programVersion } from "../output/version.ts";

/** A service that can be asked, here or elsewhere. */
export interface ReachedService {
  readonly apiUrl: string;
  readonly dbUrl: string;
  /** Host of uploaded files, where it is another one. */
  readonly resourcesUrl?: string;
  /** Where this program asks for them, if that is an address for others. */
  readonly filesAt?: string;
  readonly pauthkey: string;
  /** Names the service in the ledger: the embedded one is the same on every port. */
  readonly identity: string;
  /** What this process measures, where the service runs in it; its `/metrics` tells that. */
  readonly metrics?: Metrics;
  /** Resolves when the service in this process has shown that all of it works; undefined: it runs elsewhere. */
  readonly probe?: () => Promise<void>;
  /** Has the agent `default` of the service in this process read these from now on; undefined: it runs elsewhere. */
  readonly readSources?: (sources: Config["sources"]) => void;
  /** Closes it if this process started it; `withinMs`: what is under way may take so long, default ten seconds. */
  close(withinMs?: number): Promise<void>;
}

/** A healthy service on loopback answers within milliseconds; after this many it is taken for not running. */
const HEALTH_TIMEOUT_MS = 2000;
const EMBEDDED_IDENTITY = "embedded";

/**
 * Starts the embedded service with the key of the state folder, and notes its address there. Throws
 * `state_locked` where another process serves from the folder, and what listening throws.
 */
export async function startEmbeddedService(
  config: Config,
  state: StateFolder,
  log: Logger,
): Promise<ReachedService> {
  if (!("embedded" in config.service)) {
    throw new KbsyncError("the configuration names a hosted service, so there is none to run here", {
      code: "usage",
      hint: "`kbsync run` is the daemon alone.",
    });
  }
  const { host, port, publicUrl, modelDir } = config.service;
  const unsafe = openWithoutTls(config.service);
  if (unsafe !== undefined) log.warn({ code: "service_without_tls", subject: publicUrl ?? host }, unsafe);
  makeServiceFolder(state);
  const lock = lockFolder(state.serviceDir, "service");
  let metrics: Metrics | undefined;
  let ownKeyHash: string | undefined;
  let { sources } = config;
  const open = async () => {
    // Before the store is opened: a key file that is not as it should be ends the program here.
    const models = {
      ...rememberedEmbedder(
        join(state.serviceDir, "embedding-models.json"),
        config.kb.embedding,
        modelDir,
        log,
      ),
      ...languageModelOf(config.kb.languageModel, log),
      ...rerankerOf(config.kb.reranker, log),
    };
    // Loading the service takes half of the program's start: a daemon that has its service elsewhere goes without.
    const [{ openService }, { openSqliteStore }, measured] = await Promise.all([
      import("../../kb/service.ts"),
      import("../../kb/store/sqlite/open.ts"),
      startMetrics(),
    ]);
    metrics = measured;
    const store = await openSqliteStore({
      path: join(state.serviceDir, "kb.sqlite"),
      onUpgraded: (words) => log.info(words),
      onProblem: (problem) => log.error({ err: problem }, problem.message),
    });
    try {
      return await openService({
        stateDir: state.serviceDir,
        store,
        host,
        port,
        ...(publicUrl !== undefined && { resourcesUrl: publicUrl }),
        unratedKey: () => ownKeyHash,
        ...models,
        log: log.child({ part: "service" }),
        version: programVersion(),
        observer: measured.service,
        metrics: () => measured.text(),
        ...serviceRules(config.kb),
        chat: chatOptions(config.kb, () => sources),
      });
    } catch (error) {
      // Its threads would keep the process alive.
      await store.close();
      throw error;
    }
  };
  let service: Awaited<ReturnType<typeof open>> | undefined;
  const close = async (withinMs?: number): Promise<void> => {
    forgetServiceAddress(state);
    await service?.close(withinMs);
    lock.release();
  };
  try {
    service = await open();
    const opened = service;
    metrics?.readService(() => opened.figures());
    const key = await ownKey(service, state, log);
    ownKeyHash = hashKey(key);
    const { url } = await service.start();
    writeServiceAddress(state, url);
    return {
      apiUrl: url,
      dbUrl: url,
      ...(publicUrl !== undefined && { resourcesUrl: publicUrl, filesAt: url }),
      pauthkey: key,
      identity: EMBEDDED_IDENTITY,
      ...(metrics && { metrics }),
      probe: () => opened.probe(),
      readSources: (now) => (sources = now),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the configuration says of the service's rules. */
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

/** Sources that `default` reads: each is a search at every question. More are for agents of their own. */
const DEFAULT_PLACES_MAX = 50;

/** What answers questions. `sources`: those that are in force at the moment of the question. */
function chatOptions({ agents, chat }: Config["kb"], sources: () => Config["sources"]) {
  const { models, contextTokens, timeoutSeconds } = chat;
  return {
    agents,
    defaultKnowledge: () => placesOf(sources()),
    models,
    contextTokens,
    timeoutMs: timeoutSeconds * 1000,
  };
}

/** What the agent `default` reads: all configured sources, and what has no owner of its own. */
function placesOf(sources: Config["sources"]): KnowledgePart[] {
  const read = new Map<string, KnowledgePart>();
  for (const { collection: tier, ownerId: owner } of sources) {
    read.set(`${tier} ${owner}`, { tier, owner, top_k: TOP_K_DEFAULT });
  }
  const unowned = Tier.options.map((tier) => ({ tier, top_k: TOP_K_DEFAULT }));
  return [...[...read.values()].slice(0, DEFAULT_PLACES_MAX), ...unowned];
}

/**
 * The key of the state folder, known to the service with every scope. One that was revoked or rotated meanwhile is not
 * made valid again: the folder gets another.
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
  // Known first: a crash in between costs a key that nobody has, not a folder whose key is refused.
  await service.acceptKey(key, { ...grant, createdAt: now });
  writeKeyFile(state, key);
  log.warn(
    { keyFile: state.keyFile },
    "the key of the state folder was revoked or rotated: it has a new one",
  );
  return key;
}

/**
 * The service of the configuration: the hosted one by its addresses, the embedded one if it runs already. Undefined
 * when the embedded one does not run. Throws `key_missing` and `key_invalid`.
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
    identity: EMBEDDED_IDENTITY,
    close,
  };
}

/** The service of the configuration; the embedded one is started in this process where it does not run. */
export async function reachService(
  config: Config,
  state: StateFolder,
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<ReachedService> {
  return (await findService(config, state, env)) ?? (await startEmbeddedService(config, state, log));
}

/** Opens the daemon over the configuration's sources; see `daemonOptions`. */
export function openConfiguredDaemon(
  config: Config,
  state: StateFolder,
  service: ReachedService,
  log: Logger,
  { levelOfDone, onChange, onUpgrade, metrics }: DaemonListeners,
): Daemon {
  const options = daemonOptions(config, state, service, log, levelOfDone, metrics);
  return openDaemon({ ...options, ...(onChange && { onChange }), ...(onUpgrade && { onUpgrade }) });
}

/** Who hears of a daemon, beside the log. */
export interface DaemonListeners {
  /** The level on which what went well is logged at that moment. */
  readonly levelOfDone: () => "debug" | "info";
  readonly onChange?: () => void;
  readonly onUpgrade?: () => void;
  readonly metrics?: Metrics;
}

/**
 * What the daemon over the configuration's sources is opened with. Its warnings go to the log, and so do its activities: those that
 * went well on the level that `levelOfDone` tells at that moment.
 */
export function daemonOptions(
  config: Config,
  state: StateFolder,
  service: ReachedService,
  log: Logger,
  levelOfDone: () => "debug" | "info",
  metrics?: Metrics,
): DaemonOptions {
  const { apiUrl, dbUrl, resourcesUrl, filesAt, pauthkey, identity } = service;
  return {
    stateDir: state.path,
    service: {
      apiUrl,
      dbUrl,
      ...(resourcesUrl !== undefined && { resourcesUrl }),
      ...(filesAt !== undefined && { filesAt }),
      pauthkey,
      identity,
      // Our own service lists what it has acknowledged; of another one nobody knows.
      ...(identity === EMBEDDED_IDENTITY && { listLagMs: 0 }),
    },
    sources: config.sources,
    sync: config.sync,
    onActivity: (activity) => {
      metrics?.daemon.activity(activity);
      logActivity(log, activity, levelOfDone());
    },
    ...(metrics && { observer: metrics.daemon }),
    onWarning: (error) => logWarning(log, error),
    onNotice: (words) => log.info(words),
  };
}

/** An expected failure by its code and hint; the stack is for what nobody expected. */
function logWarning(log: Logger, error: Error): void {
  if (error instanceof KbsyncError)
    log.warn({ code: error.code, subject: error.subject, hint: error.hint }, error.message);
  else log.warn({ err: error }, error.message);
}

function logActivity(log: Logger, activity: DaemonActivity, levelOfDone: "debug" | "info"): void {
  const { atMs: _at, message, docId, ...rest } = activity;
  // Named even where there is none yet: whoever reads the log by a program finds the same names in every line on a file.
  const facts = { ...rest, docId: docId ?? null };
  const { action, path, from } = activity;
  const words = from === undefined ? `${action} ${path}` : `${action} ${from} to ${path}`;
  // What made it necessary was reported when it happened.
  if (activity.outcome === "done") log[action === "discard" ? "debug" : levelOfDone](facts, words);
  else {
    const level = activity.outcome === "skipped" ? "debug" : "warn";
    log[level]({ ...facts, reason: message }, `${words}: ${activity.outcome}, ${message}`);
  }
}

/** Name of the credential that holds the key of a hosted service. */
export const HOSTED_KEY_CREDENTIAL = "pauthkey";

function hostedKey(file: string | undefined, env: NodeJS.ProcessEnv): string {
  const named = env["KBSYNC_PAUTHKEY"];
  if (named !== undefined && named.trim() !== "")
    return validKey(named, "KBSYNC_PAUTHKEY is no key", "KBSYNC_PAUTHKEY");
  // The service manager reads the file as root and hands it to this process alone, which could not read it by itself.
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
    return false; // nobody listens there, or something else does
  }
}
