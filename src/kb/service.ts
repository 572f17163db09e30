import { randomUUID } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { codeOf } from "../lib/failure.ts";
import { isExposed } from "../lib/loopback.ts";
import { steadyClock } from "../lib/steady-clock.ts";
import { openAdmission, type Admission } from "./http/limits/admission.ts";
import { healthOf } from "./health.ts";
import type { Health } from "./http/routes/health-route.ts";
import type { Route } from "./http/operation/route-table.ts";
import { buildServer } from "./http/server.ts";
import { noticeTexts } from "./ingest/backfill.ts";
import { DEFAULT_LIMITS, RATE_DEFAULT, type ServiceOptions } from "./options.ts";
import { openWaits } from "./queue/waits.ts";
import { openLeases } from "./queue/leases.ts";
import { openSharedClock } from "./queue/shared-clock.ts";
import { openSharedTurns } from "./queue/shared-turns.ts";
import { generateKey, hashKey, LOCAL_ACCOUNT, registerKey, type KeyGrant } from "./keys/keys.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { figuresOf } from "./figures.ts";
import { measureWrites, type ServiceFigures } from "./observer.ts";
import { isDamage } from "./store/damage.ts";
import { onDamage, onCommit, type Topic } from "./store/methods.ts";
import type { NoticeListener } from "./store/notices.ts";
import type { KeyRecord } from "./store/accounts.ts";
import type { Records } from "./store/records.ts";
import type { Store } from "./store/store.ts";
import { openKnowledgeBase } from "./service-knowledge-base.ts";
import { openServiceModels, type ServiceModels } from "./service-models.ts";
import { openWork, type Work } from "./service-work.ts";
import { httpParts, rateKeys, listen, drain } from "./service-http.ts";

/** The knowledge-base service. */
export interface Service {
  /** Starts to listen, and resolves with the address when the service is ready. Throws the errors of `listenFailure`. */
  start(): Promise<{ readonly url: string; readonly port: number }>;
  /** Creates a key and stores its hash. The key itself is never shown again. */
  issueKey(grant: KeyGrant): Promise<string>;
  /** Stores the hash of an existing key. Storing it again replaces its grant. */
  acceptKey(key: string, grant: KeyGrant): Promise<KeyRecord>;
  /** Returns the record of a key; undefined for an unknown key. */
  knownKey(key: string): Promise<KeyRecord | undefined>;
  /** Returns every operation by method and path. */
  routes(): readonly Route[];
  health(): Health;
  /** Returns the figures for metrics. Rejects if the store cannot be read. */
  figures(): Promise<ServiceFigures>;
  /**
   * Sends a small request to each thread that requests need. Resolves when all have answered, even with a failure: a full disk does not
   * count as a hang. Rejects if a thread has ended.
   */
  probe(): Promise<void>;
  /**
   * Refuses new requests, completes requests in flight within a time limit, and closes everything. Idempotent. `withinMs` replaces
   * `limits.drainMs` if it is shorter.
   */
  close(withinMs?: number): Promise<void>;
}

/** Opens the service. It answers requests after `start`. */
export async function openService(given: ServiceOptions): Promise<Service> {
  const { log, host = "127.0.0.1" } = given;
  let isDamaged = false;
  const watched = onDamage(given.store, ({ message, hint }) => {
    // What is damaged in a common database concerns few of its documents, and every process alike: each goes on with the rest.
    isDamaged = given.sharesStore !== true;
    log.error({ hint }, message);
  });
  const options = { ...given, store: watched };
  const isAway = (): boolean => given.sharesStore === true && given.store.problem() !== undefined;
  const fail = reportTo(log, isAway);
  const { nowMs, steadyMs, worker, sharedTurns } = await openShared(options, fail);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const admission = openAdmission(limits);
  const models = openServiceModels(options, nowMs, steadyMs, sharedTurns);
  const changeWaits = openWaits();
  const store = listenToCommits(options, models, (topic, accountId) => {
    if (topic === "change") changeWaits.notify(accountId);
    else work.wake(topic);
    store.notices?.announce(topic, accountId);
  });
  const { records, queue } = store;
  let resourcesUrl = options.resourcesUrl;

  const kb = await openKnowledgeBase(options, store, models, {
    leases: openLeases(queue, worker, steadyMs, fail("leases of jobs were not renewed; retrying")),
    sharedTurns,
    changeWaits,
    limits,
    resourcesUrl: () => resourcesUrl,
    isEnding: () => admission.state() === "draining",
    nowMs,
    steadyMs,
  });
  const isReachedByOthers = isExposed({ host, publicUrl: options.resourcesUrl });
  const rate = options.rate ?? (isReachedByOthers ? RATE_DEFAULT : undefined);
  const work = openWork(options, kb, models.endpoint, rate !== undefined, fail);
  const health = (): Health =>
    healthOf({
      ...models,
      admission,
      version: options.version,
      isBackfilling: models.backfill.isRunning(),
      isDamaged,
      isFailing: store.problem() !== undefined,
    });
  const { id: localAccountId } = await records.ensureAccount(LOCAL_ACCOUNT);
  const server = await buildServer(
    {
      ...httpParts(options, kb, admission, limits, rateKeys(options, rate, steadyMs)),
      daemonAccountId: options.daemon && localAccountId,
    },
    work.webhooks,
    work.answering,
    health,
    {
      metrics: isReachedByOthers ? undefined : options.metrics,
      consoleFiles: options.consoleFiles,
      daemon: options.daemon,
    },
  );
  const running: Running = { server, admission, drainMs: limits.drainMs, kb, models, work, store, log };
  let closing: Promise<void> | undefined;

  return {
    start: async () => {
      const url = await listen(server, host, options.port);
      resourcesUrl ??= url;
      log.debug({ url }, "listening");
      await resumeWork(running, worker, options.sharesStore !== true);
      return { url, port: Number(new URL(url).port) };
    },
    ...keyOperations(records),
    routes: () => server.routeTable.routes,
    health,
    figures: async () => figuresOf({ ...models, store, admission, nowMs }),
    probe: async () => {
      await Promise.allSettled([records.collections(""), records.ensureAccount(LOCAL_ACCOUNT)]);
      const problem = store.problem();
      // A database that does not answer is no hang of this process, and a restart of it would change nothing.
      if (problem !== undefined && !isAway()) throw problem;
    },
    close: (withinMs) => (closing ??= closeService(running, withinMs, fail)),
  };
}

/** Opens what the processes of a store share: turns, and the clock by which leases end. `nowMs` replaces that clock too. */
async function openShared(
  { store: { clockMs, claims }, nowMs }: ServiceOptions,
  fail: ReturnType<typeof reportTo>,
) {
  const clock =
    clockMs === undefined || nowMs !== undefined
      ? undefined
      : await openSharedClock(clockMs, fail("the clock of the database was not read; retrying"));
  const worker = randomUUID();
  const onTurns = fail("claims against other processes were not renewed or released; they end by themselves");
  const sharedTurns = openSharedTurns(claims, worker, onTurns);
  return {
    nowMs: nowMs ?? Date.now,
    steadyMs: steadyClock(clock?.nowMs ?? nowMs, nowMs),
    worker,
    sharedTurns: {
      ...sharedTurns,
      close: async () => {
        clock?.close();
        await sharedTurns.close();
      },
    },
  };
}

/** The parts of an open service. */
interface Running {
  readonly server: FastifyInstance;
  readonly admission: Admission;
  /** Maximum time that requests in flight get at the end. */
  readonly drainMs: number;
  readonly kb: KnowledgeBase;
  readonly models: ServiceModels;
  readonly work: Work;
  readonly store: Store;
  readonly log: Logger;
}

/**
 * Logs failures that no caller sees, except those of a damaged store, and those of a database that does not answer: each was logged
 * when it was first found.
 */
function reportTo(log: Logger, isAway: () => boolean): (message: string) => (error: unknown) => void {
  return (message) => (error) => {
    if (isDamage(error) || (isAway() && codeOf(error) === "store_busy")) return;
    log.error({ err: error }, message);
  };
}

const QUEUES = ["ingest", "chat", "webhook"] as const;

/** Wakes what waits for the writes of a store, and measures them. */
function listenToCommits(
  { store, observer }: ServiceOptions,
  { backfill }: ServiceModels,
  wake: (topic: Topic, accountId: string) => void,
): Store {
  const listening = onCommit(noticeTexts(store, backfill), wake);
  return observer === undefined ? listening : measureWrites(listening, observer);
}

/** Continues what an earlier run left, and admits requests. `isOnly`: no other process works on the store. */
async function resumeWork(
  { admission, kb, models, work, log }: Running,
  worker: string,
  isOnly: boolean,
): Promise<void> {
  try {
    const leftovers = await kb.files.recover(async (token) => (await kb.records.file(token)) !== undefined);
    if (leftovers > 0)
      log.info({ files: leftovers }, "recovered the uploads that an earlier run left unfinished");
  } catch (error) {
    // Housekeeping looks again, and most of the service needs no file.
    if (codeOf(error) !== "files_unavailable") throw error;
    log.warn({ err: error }, "starting although the store of uploaded files does not answer");
  }
  await kb.queue.resume(worker, kb.steadyMs(), isOnly);
  admission.become("ready");
  for (const queue of QUEUES) work.wake(queue);
  kb.notices?.listen(listenerOf(kb, work));
  work.housekeeping.start();
  await models.backfill.resume();
}

/** Wakes what waits for the writes of other processes. */
function listenerOf({ jobWaits, changeWaits, leases }: KnowledgeBase, work: Work): NoticeListener {
  return {
    onNotice: (topic, key) => {
      if (topic === "change") changeWaits.notify(key);
      else if (topic !== "ended") work.wake(topic);
      else {
        leases.recheck(key);
        jobWaits.notify(key);
      }
    },
    onMissed: () => {
      changeWaits.notifyAll();
      jobWaits.notifyAll();
      for (const queue of QUEUES) work.wake(queue);
    },
  };
}

/** Completes requests in flight within the time limit, and closes everything. */
async function closeService(
  { server, admission, kb, models, work, store, log, ...running }: Running,
  withinMs = running.drainMs,
  fail: ReturnType<typeof reportTo>,
): Promise<void> {
  const drainMs = Math.round(Math.min(withinMs, running.drainMs));
  const endMs = performance.now() + drainMs;
  await drain(server, admission, kb, drainMs, log);
  // Jobs get the rest of the time limit.
  await work.close(Math.max(0, endMs - performance.now()));
  await kb.leases.close().catch(fail("interrupted jobs were not handed back"));
  // Before housekeeping, which may wait for it.
  kb.files.close();
  await work.housekeeping.close();
  kb.pages.close();
  kb.mails.close();
  // Closed together: a backfill in progress ends with its model.
  const { backfill, model, serving, endpoint, reranker } = models;
  await Promise.all([backfill.close(), kb.ingest.close(), model.close(), serving.close()]);
  // Last: the backfill ends its claim.
  await kb.sharedTurns.close();
  await endpoint?.chat.close();
  await reranker?.close();
  await store.close();
}

/** Returns the operations on keys that the program itself calls. */
function keyOperations(records: Records): Pick<Service, "issueKey" | "acceptKey" | "knownKey"> {
  return {
    issueKey: async (grant) => {
      const key = generateKey();
      await registerKey(records, key, grant);
      return key;
    },
    acceptKey: (key, grant) => registerKey(records, key, grant),
    knownKey: (key) => records.keyByHash(hashKey(key)),
  };
}
