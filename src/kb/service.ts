import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { listenFailure } from "../lib/listen-failure.ts";
import { isExposed, reachedAt } from "../lib/loopback.ts";
import { addressRules } from "../lib/public-address.ts";
import { openShares } from "../lib/shares.ts";
import { steadyClock } from "../lib/steady-clock.ts";
import { openTurns } from "../lib/turns.ts";
import { DEFAULT_CHAT, openAnswering } from "./answering.ts";
import type { TokenMeter } from "./embed/remote.ts";
import { openBudget, type Budget } from "./models/budget.ts";
import type { ChatModel } from "./models/chat-model.ts";
import { meteredModel } from "./models/metered.ts";
import { openSessions } from "./console/sessions.ts";
import { openFetcher } from "./fetch/fetcher.ts";
import type { Fetcher, FetcherOptions } from "./fetch/fetcher.ts";
import { guardedConnector } from "./fetch/guarded-dial.ts";
import { openAdmission, type Admission } from "./http/admission.ts";
import { openResponseMemory } from "./http/response-memory.ts";
import { healthOf } from "./health.ts";
import type { Health } from "./http/health-route.ts";
import { openIdempotency } from "./http/idempotency.ts";
import { openKeyring } from "./http/keyring.ts";
import type { HttpParts } from "./http/operation.ts";
import { openRateLimiter } from "./http/rate.ts";
import type { Route } from "./http/route-table.ts";
import { buildServer } from "./http/server.ts";
import { refusalAnswer } from "./http/status.ts";
import { openUrgent } from "./http/urgent.ts";
import { noticeMissingVectors, openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openExtractor } from "./ingest/extract/extract.ts";
import { openIngest, type Ingest, type IngestParts } from "./ingest/ingest.ts";
import { openMailReader } from "./ingest/mail/mail-reader.ts";
import { openPageReader } from "./ingest/page/page-reader.ts";
import { openLanguageService } from "./ingest/language-service.ts";
import { openModel } from "./ingest/model.ts";
import { openServing } from "./ingest/serving.ts";
import { openTextModel } from "./ingest/agentic/text-model.ts";
import { openModelHealth } from "./models/model-health.ts";
import { openOpenAiModel } from "./models/openai.ts";
import { DEFAULT_LIMITS, RATE_DEFAULT, type ServiceLimits, type ServiceOptions } from "./options.ts";
import { DEFAULT_RETENTION, openHousekeeping } from "./resources/housekeeping.ts";
import { openWaits } from "./queue/waits.ts";
import { openLeases } from "./queue/leases.ts";
import { openJobRunner } from "./jobs/job-runner.ts";
import { fileAddresses } from "./uploads/file-address.ts";
import { openFileArea } from "./uploads/file-area.ts";
import { generateKey, hashKey, LOCAL_ACCOUNT, registerKey } from "./keys/keys.ts";
import type { KeyGrant } from "./keys/keys.ts";
import { FRESH_WAITS_MAX } from "./resources/receipt.ts";
import { cacheCollections } from "./resources/knowledge-base.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { Refusal } from "./resources/refusal.ts";
import { figuresOf } from "./figures.ts";
import { timeWrites } from "./observer.ts";
import type { ServiceFigures, ServiceObserver } from "./observer.ts";
import { openModelTurns } from "./search/model-turns.ts";
import { openReranker } from "./search/reranker.ts";
import { isDamage } from "./store/damage.ts";
import { onDamage, onCommit, type Topic } from "./store/methods.ts";
import type { KeyRecord } from "./store/records.ts";
import type { Records } from "./store/store.ts";
import { logDelivery } from "./webhooks/report.ts";
import { openWebhooks, type Webhooks } from "./webhooks/webhooks.ts";

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
  const { log, observer } = given;
  let isDamaged = false;
  const watched = onDamage(given.store, ({ message, hint }) => {
    isDamaged = true;
    log.error({ hint }, message);
  });
  const options = { ...given, store: watched };
  /** Logs a failure that no caller sees, except those of a damaged store, which was logged when it was first found. */
  const fail = (message: string) => (error: unknown) => {
    if (!isDamage(error)) log.error({ err: error }, message);
  };
  const host = options.host ?? "127.0.0.1";
  const nowMs = options.nowMs ?? Date.now;
  const steadyMs = steadyClock(nowMs, options.nowMs);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const admission = openAdmission(limits);
  const budget = budgetOf(options, nowMs);
  const { model, serving, backfill } = openEmbedding(options, steadyMs, budget);
  const { reranker, endpoint, language } = openOtherModels(options, steadyMs, budget);
  const changeWaits = openWaits();
  const wake = (topic: Topic, accountId: string): void => {
    if (topic === "change") changeWaits.notify(accountId);
    else ({ ingest: jobs, chat: answering.jobs, webhook: webhooks.deliveries })[topic].wake();
  };
  const noticed = onCommit(noticeMissingVectors(options.store, backfill.wake, serving.isEarlier), wake);
  const store =
    observer === undefined ? noticed : timeWrites(noticed, (seconds) => observer.stage("store", seconds));
  const worker = randomUUID();
  const { records, queue, index } = store;
  const leases = openLeases(queue, worker, steadyMs, fail("leases of jobs were not renewed; retrying"));
  let resourcesUrl = options.resourcesUrl;

  const kb: KnowledgeBase = {
    records,
    queue,
    index,
    scrub: () => store.scrub(),
    model,
    embedderFor: serving.embedderFor,
    reranker,
    askFolders: options.askFolders,
    freshWaits: openShares(FRESH_WAITS_MAX),
    isEmbedding: () => backfill.isRunning(),
    modelTurns: openModelTurns(() => new Refusal("overloaded", "Too many searches are waiting for a model.")),
    ingest: openPipeline(options, { model, language, embedderFor: serving.embedderFor }, index),
    files: await openFileArea(join(options.stateDir, "uploads")),
    // A service that other machines reach now may have been local when its first files were uploaded.
    addresses: fileAddresses(() => resourcesUrl ?? "", true),
    fetcher: timeFetches(observer, fetching(options, "link resources")),
    pages: openPageReader(),
    mails: openMailReader(),
    turns: openTurns(),
    leases,
    jobWaits: openWaits(),
    changeWaits,
    collections: cacheCollections(records),
    limits,
    explain: (error) => explain(error, log),
    isEnding: () => admission.state() === "draining",
    nowMs,
    steadyMs,
    ...(observer && { onSearched: (tier, seconds) => observer.search(tier, seconds) }),
  };
  const jobs = openJobRunner(kb, fail("the queue of documents is stuck; retrying"));
  const webhooks = openDeliveries(options, kb, fail("the queue of webhook messages is stuck; retrying"));
  const retention = { ...DEFAULT_RETENTION, ...options.retention };
  const isReachedByOthers = isExposed({ host, publicUrl: options.resourcesUrl });
  const rate = options.rate ?? (isReachedByOthers ? RATE_DEFAULT : undefined);
  const answering = openAnswering({
    kb,
    log,
    endpoint,
    options: options.chat,
    // The limit on bytes applies to all images of a request together, where they are stored.
    fetcher: openFetcher({ ...fetching(options, "images"), bytesMax: Infinity }),
    imageDays: retention.threadImageDays,
    allowsHost: webhooks.allowsHost,
    isRated: rate !== undefined,
    onEnded: observer && ((outcome) => observer.question(outcome)),
  });
  const housekeeping = openHousekeeping({
    records,
    queue,
    files: kb.files,
    retention,
    nowMs,
    onSwept: (swept) => log.debug(swept, "housekeeping"),
    onProblem: fail("housekeeping failed; retrying later"),
  });
  const health = (): Health =>
    healthOf({
      admission,
      version: options.version,
      model,
      reranker,
      language,
      isBackfilling: backfill.isRunning(),
      isDamaged,
      isFailing: store.problem() !== undefined,
    });
  const server = await buildServer(
    {
      ...httpParts(options, kb, admission, limits, rateKeys(options, rate, steadyMs)),
      daemonAccountId: options.daemon && (await records.ensureAccount(LOCAL_ACCOUNT)).id,
    },
    webhooks,
    answering,
    health,
    {
      metrics: isReachedByOthers ? undefined : options.metrics,
      consoleFiles: options.consoleFiles,
      daemon: options.daemon,
    },
  );

  const close = async (withinMs = limits.drainMs): Promise<void> => {
    const drainMs = Math.round(Math.min(withinMs, limits.drainMs));
    const endMs = performance.now() + drainMs;
    await drain(server, admission, kb, drainMs, log);
    // Jobs get the rest of the time limit. They are durable, and the next start repeats an aborted one.
    await jobs.close(Math.max(0, endMs - performance.now()));
    await answering.close();
    await webhooks.close();
    await leases.close().catch(fail("interrupted jobs were not handed back"));
    await housekeeping.close();
    kb.pages.close();
    kb.mails.close();
    // Closed together: a backfill in progress ends with its model.
    await Promise.all([backfill.close(), kb.ingest.close(), model.close(), serving.close()]);
    await endpoint?.chat.close();
    await reranker?.close();
    await store.close();
  };
  let closing: Promise<void> | undefined;

  return {
    start: async () => {
      const url = await listen(server, host, options.port);
      resourcesUrl ??= url;
      log.debug({ url }, "listening");
      const leftovers = await kb.files.recover(async (token) => (await records.file(token)) !== undefined);
      if (leftovers > 0)
        log.info({ files: leftovers }, "recovered the uploads that an earlier run left unfinished");
      await queue.resume(worker, steadyMs(), options.sharesStore !== true);
      admission.become("ready");
      // Continues what an earlier run left.
      jobs.wake();
      answering.jobs.wake();
      webhooks.deliveries.wake();
      housekeeping.start();
      await backfill.resume();
      return { url, port: Number(new URL(url).port) };
    },
    ...keyOperations(records),
    routes: () => server.routeTable.routes,
    health,
    figures: async () => figuresOf({ store, admission, model, reranker, language, budget, nowMs }),
    probe: async () => {
      await Promise.allSettled([records.collections(""), records.ensureAccount(LOCAL_ACCOUNT)]);
      const problem = store.problem();
      if (problem !== undefined) throw problem;
    },
    close: (withinMs) => (closing ??= close(withinMs)),
  };
}

/** Opens the cap on what models cost; undefined: there is none. */
function budgetOf({ budget, store }: ServiceOptions, nowMs: () => number): Budget | undefined {
  if (budget?.perDay === undefined && budget?.perMonth === undefined) return undefined;
  const hint = "It is set in kb.budget of the service's configuration.";
  return openBudget({
    ...budget,
    records: store.records,
    refuse: (message, retryAfterSeconds) => new Refusal("budget_spent", message, { hint, retryAfterSeconds }),
    nowMs,
  });
}

/** Counts tokens as what they cost. */
function meterOf(budget: Budget | undefined, price: number | undefined): TokenMeter | undefined {
  if (budget === undefined || price === undefined) return undefined;
  const costOf = (tokens: number): number => (tokens / 1_000_000) * price;
  return {
    reserve: async (tokensMax) => {
      const settle = await budget.reserve("embedding", costOf(tokensMax));
      return (tokens) => settle(costOf(tokens));
    },
  };
}

/** Opens the embedding model, the search with an earlier one, and the backfill that replaces its vectors. */
function openEmbedding(options: ServiceOptions, steadyMs: () => number, budget: Budget | undefined) {
  const { log, store, openEmbedder, openEarlierEmbedder } = options;
  const meter = meterOf(budget, options.budget?.embeddingPrice);
  const model = openModel(openEmbedder && (() => openEmbedder(meter)), steadyMs, {
    onReady: (fingerprint) => {
      log.info({ fingerprint }, "the embedding model is ready");
      backfill.wake();
    },
    onProblem: (reason, hint) => log.warn({ hint }, reason),
  });
  const serving = openServing(
    model,
    store.index,
    openEarlierEmbedder && ((fingerprint) => openEarlierEmbedder(fingerprint, meter)),
    steadyMs,
  );
  const backfill = openBackfill({
    index: store.index,
    model: () => model.get(),
    onChangedOver: () => {
      serving.changedOver();
      log.info("searches use the new embedding model");
    },
    onLeft: (chunks) => model.noteLeft(chunks),
    report: (report) => logBackfill(log, report),
  });
  return { model, serving, backfill };
}

/** Opens the pipeline from a file to its chunks. */
function openPipeline(
  { log, observer, ocr }: ServiceOptions,
  models: Pick<IngestParts, "model" | "language" | "embedderFor">,
  index: ServiceOptions["store"]["index"],
): Ingest {
  return openIngest({
    ...models,
    embeddedChunks: (at, fingerprint) => index.embeddedChunks(at, fingerprint),
    onOtherStrategy: (requested, used, reason) =>
      log.info({ asked: requested, used }, `a text was split by another strategy: ${reason}`),
    extractor: openExtractor(ocr === undefined ? {} : { ocr }),
    busy: () => new Refusal("ingest_busy", "Too many documents are waiting to be processed."),
    ...(observer && { onStage: (stage, seconds) => observer.stage(stage, seconds) }),
  });
}

/** Opens the deliveries to webhooks, whose addresses must be public or allowed. */
function openDeliveries(
  { log, version, webhookAllow = [], resolveHost }: ServiceOptions,
  { records, queue, leases, turns, nowMs, steadyMs }: KnowledgeBase,
  onProblem: (error: unknown) => void,
): Webhooks {
  const reachable = addressRules(webhookAllow);
  return openWebhooks({
    records,
    queue,
    leases,
    nowMs,
    steadyMs,
    connect: guardedConnector(reachable, resolveHost),
    allowsHost: (name) => reachable.mayAllow(name),
    turns,
    agent: `kbsync/${version} (webhooks)`,
    chance: Math.random,
    report: (report) => logDelivery(log, report),
    onProblem,
  });
}

/** Returns the options of a fetcher, which names its purpose to the servers that it asks. */
function fetching({ version, fetchAllow, resolveHost }: ServiceOptions, purpose: string): FetcherOptions {
  return {
    allow: fetchAllow ?? [],
    ...(resolveHost === undefined ? {} : { resolve: resolveHost }),
    busy: () => new Refusal("ingest_busy", "Too many addresses are waiting to be fetched."),
    agent: `kbsync/${version} (${purpose})`,
  };
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

/** Opens what every route uses. */
function httpParts(
  { log, observer, filesNeedKey = false, resourcesUrl }: ServiceOptions,
  kb: KnowledgeBase,
  admission: Admission,
  limits: ServiceLimits,
  rate: ReturnType<typeof rateKeys>,
): Omit<HttpParts, "daemonAccountId"> {
  return {
    ...limits,
    kb,
    keyring: openKeyring(kb.records, kb.nowMs, rate),
    sessions: openSessions(kb.records, kb.nowMs),
    publicUrl: resourcesUrl,
    idempotency: openIdempotency(kb.records, kb.nowMs),
    admission,
    responseMemory: openResponseMemory(limits.answerBytes),
    urgent: openUrgent(),
    log,
    filesNeedKey,
    ...(observer && {
      onAnswered: (operation, status, seconds) => observer.request(operation, status, seconds),
    }),
  };
}

/** Limits the rate of each key. The default rate exempts the program's own daemon, which has thousands of files to send. */
function rateKeys(options: ServiceOptions, rate: ServiceOptions["rate"], steadyMs: () => number) {
  const limiter = openRateLimiter(rate);
  return {
    take: (sha256: string): void => {
      const isExempt = options.rate === undefined && sha256 === options.unratedKey?.();
      if (!isExempt) limiter.take(sha256, steadyMs());
    },
  };
}

/** Explains a failure as the API would, and logs one that is the service's own. */
function explain(error: unknown, log: Logger): ReturnType<KnowledgeBase["explain"]> {
  const { status, retryAfterSeconds, body } = refusalAnswer(error);
  if (status === 500) log.error({ err: error }, "a document could not be processed");
  return { ...body.error, message: body.message, retryAfterSeconds };
}

/** Refuses new requests, and closes the server when those in flight are answered, or after `drainMs`. */
async function drain(
  server: FastifyInstance,
  admission: Admission,
  { jobWaits, changeWaits }: KnowledgeBase,
  drainMs: number,
  log: Logger,
): Promise<void> {
  admission.become("draining");
  // Frees the port for the next start at once. Connections with requests in flight stay open until these are answered.
  server.server.close();
  jobWaits.release();
  changeWaits.release();
  if ((await admission.empty(drainMs)) === "timeout") {
    log.warn({ drainMs }, "closing with requests in flight");
    server.server.closeAllConnections();
  }
  await server.close();
}

/** Opens the reranker and the language model that are configured, and logs when one fails or works again. */
function openOtherModels(options: ServiceOptions, steadyMs: () => number, budget: Budget | undefined) {
  const { log, languageModel } = options;
  const reranker =
    options.reranker &&
    openReranker({
      ...options.reranker,
      nowMs: steadyMs,
      onChange: (problem) => {
        if (problem === undefined) log.info("the reranker works again");
        else log.warn({ err: problem }, "the reranker fails; high_accuracy reranks by sentences");
      },
    });
  const { timeoutMs, models } = { ...DEFAULT_CHAT, ...options.chat };
  const metered = (chat: ChatModel): ChatModel =>
    budget === undefined
      ? chat
      : meteredModel(chat, budget, (name) => (Object.hasOwn(models, name) ? models[name] : undefined));
  const endpoint = languageModel && {
    chat: metered(openOpenAiModel({ ...languageModel, timeoutMs })),
    model: languageModel.model,
    watch: openModelHealth((name, problem) => {
      if (problem === undefined) log.info({ model: name }, "the language model works again");
      else log.warn({ model: name, err: problem }, "the language model fails; others stand in for it");
    }),
  };
  const language =
    endpoint && openLanguageService(openTextModel(endpoint.chat, endpoint.model), steadyMs, endpoint.watch);
  return { reranker, endpoint, language };
}

/** Opens a fetcher that reports the duration of successful fetches. */
function timeFetches(observer: ServiceObserver | undefined, options: FetcherOptions): Fetcher {
  const fetcher = openFetcher(options);
  if (observer === undefined) return fetcher;
  return {
    refuse: (url) => fetcher.refuse(url),
    fetch: async (url, known, take, asked) => {
      const startMs = performance.now();
      const fetched = await fetcher.fetch(url, known, take, asked);
      observer.stage("fetch", (performance.now() - startMs) / 1000);
      return fetched;
    },
  };
}

/** Starts to listen; returns the address for this machine. */
async function listen(server: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    await server.listen({ host, port });
    const address = server.server.address();
    const given = typeof address === "object" && address !== null ? address.port : port;
    return `http://${reachedAt(host)}:${given}`;
  } catch (error) {
    throw listenFailure(error, {
      subject: `${host}:${port}`,
      hint: "Set service.host and service.port in the configuration to an address of this machine that is free.",
    });
  }
}

function logBackfill(log: Logger, { chunks, error }: BackfillReport): void {
  if (error === undefined) log.info({ chunks }, "embedded chunks that were stored without vectors");
  else if (!isDamage(error))
    log.warn(
      { chunks, err: error },
      "stopped embedding chunks that were stored without vectors; retrying later",
    );
}
