import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import { addressRules, isLiteral } from "../lib/public-address.ts";
import { openTurns } from "../lib/turns.ts";
import { UPLOAD_BYTES_MAX } from "../wire/upload.ts";
import { openFetcher } from "./fetch/fetcher.ts";
import type { Fetcher, FetcherOptions } from "./fetch/fetcher.ts";
import type { ResolveAll } from "./fetch/guarded-dial.ts";
import { guardedConnector } from "./fetch/guarded-dial.ts";
import { openAdmission } from "./http/admission.ts";
import type { Admission } from "./http/admission.ts";
import type { Health } from "./http/health-route.ts";
import { openIdempotency } from "./http/idempotency.ts";
import { openKeyring } from "./http/keyring.ts";
import { openRateLimiter } from "./http/rate.ts";
import type { RateRule } from "./http/rate.ts";
import type { MetricsText } from "./http/monitoring-routes.ts";
import type { Route } from "./http/route-table.ts";
import { buildServer } from "./http/server.ts";
import { refusalAnswer } from "./http/status.ts";
import { noticeMissingVectors, openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openExtractor } from "./ingest/extract/extract.ts";
import type { OcrOptions } from "./ingest/extract/ocr.ts";
import { openIngest } from "./ingest/ingest.ts";
import { openPageReader } from "./ingest/page/page-reader.ts";
import { watchLanguageModel, NO_LANGUAGE_MODEL } from "./ingest/language-service.ts";
import { openModel } from "./ingest/model.ts";
import type { FoundModel, Model, ModelState } from "./ingest/model.ts";
import { openServing } from "./ingest/serving.ts";
import { openLanguageModel } from "./language/openai-compatible.ts";
import type { LanguageModelOptions } from "./language/openai-compatible.ts";
import { DEFAULT_RETENTION, openHousekeeping } from "./resources/housekeeping.ts";
import type { Retention } from "./resources/housekeeping.ts";
import { noticeJobs, openJobRunner } from "./resources/job-runner.ts";
import { fileAddresses, isLoopback } from "./resources/file-address.ts";
import { openFileArea } from "./resources/file-area.ts";
import { generateKey, hashKey, LOCAL_ACCOUNT, registerKey } from "./resources/keys.ts";
import type { KeyGrant } from "./resources/keys.ts";
import { rememberCollections } from "./resources/knowledge-base.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { Refusal } from "./resources/refusal.ts";
import { timeWrites } from "./observer.ts";
import type { ServiceFigures, ServiceObserver } from "./observer.ts";
import { openReranker } from "./search/reranker.ts";
import type { Reranker, RerankerOptions, RerankerState } from "./search/reranker.ts";
import type { KeyRecord, Store } from "./store/store.ts";
import { noticeMessages } from "./webhooks/courier.ts";
import { openWebhooks } from "./webhooks/webhooks.ts";

/** What the service is opened with. */
export interface ServiceOptions {
  /** Holds uploaded files, in `uploads/`. Made when missing. */
  readonly stateDir: string;
  /** The service closes it. */
  readonly store: Store;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** 0: any free one. */
  readonly port: number;
  /** Where clients reach uploaded files, without a slash at the end. Default: where the service listens. */
  readonly resourcesUrl?: string;
  /** Finds the embedding model when it is first needed. Undefined: run on words alone. */
  readonly openEmbedder?: () => Promise<FoundModel>;
  /**
   * Opens the model of a fingerprint that was used before `openEmbedder` gave another one. It serves until the vectors of
   * the new one are complete. Undefined: then the new one serves at once, as far as it has come.
   */
  readonly openEarlierEmbedder?: (fingerprint: string) => Promise<FoundModel>;
  /** The model that divides documents with strategy `agentic`. Default: none, they are divided by meaning. */
  readonly languageModel?: LanguageModelOptions;
  /** The model that `high_accuracy` reranks with. Default: none, it reranks by sentences. */
  readonly reranker?: Omit<RerankerOptions, "nowMs" | "onChange">;
  readonly log: Logger;
  /** Told by the health route. */
  readonly version: string;
  /** Hosts, addresses and ranges that links may be fetched from although they are not public. Default none. */
  readonly fetchAllow?: readonly string[];
  /** Resolves the names of links; given by tests. Default the system's. */
  readonly resolveHost?: ResolveAll;
  /** The requests each key may send. Default: as many as it likes on loopback, else `RATE_DEFAULT`. */
  readonly rate?: RateRule;
  /** Uploaded files are served only to keys of their account. Default false: whoever has the address can read. */
  readonly filesNeedKey?: boolean;
  /** Hosts, addresses and ranges that webhooks may be sent to although they are not public. Default none. */
  readonly webhookAllow?: readonly string[];
  readonly retention?: Partial<Retention>;
  /** How text in pictures is recognised. */
  readonly ocr?: OcrOptions;
  readonly limits?: Partial<ServiceLimits>;
  readonly nowMs?: () => number;
  /** Hears of what the service does. */
  readonly observer?: ServiceObserver;
  /**
   * What `GET /metrics` answers. The route is there only where the service listens on loopback: metrics are of all
   * accounts together, so that no account's key may open them. Default: there is none.
   */
  readonly metrics?: () => Promise<MetricsText>;
}

/** What a key may send where the service listens for others than this machine: ten a second, as a program does. */
const RATE_DEFAULT: RateRule = { perMinute: 600, burst: 1200 };

/** Bounds, each with a default. */
export interface ServiceLimits {
  /** Longest text of a resource in bytes. Default 32 MB. */
  readonly contentBytes: number;
  /** Largest upload in bytes. Default 32 MB. */
  readonly uploadBytes: number;
  /** Requests under way at once. Default 1024. */
  readonly requests: number;
  /** Bytes of bodies under way at once. Default 256 MB. */
  readonly bodyBytes: number;
  /** Creates, updates and uploads under way at once. Default 512. */
  readonly ingests: number;
  /** How long an answer waits for a client that does not read on. Default 2 minutes. */
  readonly answerIdleMs: number;
  /** How long closing waits for requests under way. Default 10 s. */
  readonly drainMs: number;
}

const DEFAULT_LIMITS: ServiceLimits = {
  contentBytes: UPLOAD_BYTES_MAX,
  uploadBytes: UPLOAD_BYTES_MAX,
  requests: 1024,
  bodyBytes: 256 * 1024 * 1024,
  ingests: 512,
  answerIdleMs: 120_000,
  drainMs: 10_000,
};

/** The knowledge-base service. */
export interface Service {
  /** Listens; resolves with its address when it is ready to answer. Throws `address_in_use`, `address_refused`. */
  start(): Promise<{ readonly url: string; readonly port: number }>;
  /** Makes a key and stores its hash. This is the only time the key itself is seen. */
  issueKey(grant: KeyGrant): Promise<string>;
  /** Stores the hash of a key that exists already; doing so again replaces its grant. */
  acceptKey(key: string, grant: KeyGrant): Promise<KeyRecord>;
  /** What is known of a key; undefined: nothing. */
  knownKey(key: string): Promise<KeyRecord | undefined>;
  /** Every operation by method and path, as the server has them. */
  routes(): readonly Route[];
  health(): Health;
  /** For metrics. Rejects where the store cannot be read. */
  figures(): Promise<ServiceFigures>;
  /**
   * Asks the threads that every request needs for something small; resolves when all have answered, even with a failure:
   * a full disk is no hang.
   */
  probe(): Promise<void>;
  /**
   * Refuses what is new, finishes what is under way within a bound, and closes everything. Idempotent. `withinMs`: that
   * bound, where it is less than `limits.drainMs`.
   */
  close(withinMs?: number): Promise<void>;
}

/** Composes the service. It answers after `start`. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { log, observer } = options;
  const host = options.host ?? "127.0.0.1";
  const nowMs = options.nowMs ?? Date.now;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const admission = openAdmission(limits);
  const model = openModel(options.openEmbedder, nowMs, {
    onReady: (fingerprint) => {
      log.info({ fingerprint }, "the embedding model is ready");
      backfill.wake();
    },
    onProblem: (reason, hint) => log.warn({ hint }, reason),
  });
  const reranker =
    options.reranker &&
    openReranker({
      ...options.reranker,
      nowMs,
      onChange: (problem) => {
        if (problem === undefined) log.info("the reranker works again");
        else log.warn({ err: problem }, "the reranker fails, high_accuracy reranks by sentences");
      },
    });
  const serving = openServing(model, options.store, options.openEarlierEmbedder);
  const language =
    options.languageModel &&
    watchLanguageModel(openLanguageModel(options.languageModel), nowMs, (problem) =>
      log.warn({ err: problem }, "the language model fails, agentic chunking splits by meaning"),
    );
  const backfill = openBackfill({
    store: options.store,
    model: () => model.get(),
    onChangedOver: () => {
      serving.changedOver();
      log.info("searches use the new embedding model");
    },
    onLeft: (chunks) => model.noteLeft(chunks),
    report: (report) => logBackfill(log, report),
  });
  const noticed = noticeMessages(
    noticeJobs(noticeMissingVectors(options.store, backfill.wake, serving.isChanging), () => jobs.wake()),
    () => webhooks.courier.wake(),
  );
  const store =
    observer === undefined ? noticed : timeWrites(noticed, (seconds) => observer.stage("store", seconds));
  let resourcesUrl = options.resourcesUrl;

  const kb: KnowledgeBase = {
    store,
    model,
    embedderFor: serving.embedderFor,
    reranker,
    ingest: openIngest({
      model,
      language,
      embedderFor: serving.embedderFor,
      embeddedChunks: (at, fingerprint) => store.embeddedChunks(at, fingerprint),
      onOtherStrategy: (asked, used, reason) =>
        log.info({ asked, used }, `a text was split by another strategy: ${reason}`),
      extractor: openExtractor(options.ocr === undefined ? {} : { ocr: options.ocr }),
      busy: () => new Refusal("ingest_busy", "Too many documents are waiting to be taken in."),
      ...(observer && { onStage: (stage, seconds) => observer.stage(stage, seconds) }),
    }),
    files: await openFileArea(join(options.stateDir, "uploads")),
    addresses: fileAddresses(() => resourcesUrl ?? "", isLoopback(host)),
    fetcher: timeFetches(observer, {
      allow: options.fetchAllow ?? [],
      ...(options.resolveHost === undefined ? {} : { resolve: options.resolveHost }),
      agent: `kbsync/${options.version} (link resources)`,
      busy: () => new Refusal("ingest_busy", "Too many links are waiting to be fetched."),
    }),
    pages: openPageReader(),
    turns: openTurns(),
    collections: rememberCollections(store),
    limits,
    explain: (error) => {
      const { status, retryAfterSeconds, body } = refusalAnswer(error);
      if (status === 500) log.error({ err: error }, "taking in a document failed");
      return { message: body.message, retryAfterSeconds };
    },
    isEnding: () => admission.state() === "draining",
    nowMs,
    ...(observer && { onSearched: (tier, seconds) => observer.search(tier, seconds) }),
  };
  const jobs = openJobRunner(kb, (error) =>
    log.error({ err: error }, "the queue of documents stands still, tries again"),
  );
  const reachable = addressRules(options.webhookAllow ?? []);
  const webhooks = openWebhooks({
    store,
    nowMs,
    connect: guardedConnector(reachable),
    allowsHost: (name) => reachable.allowsName(name) || !isLiteral(name) || reachable.allowsAddress(name),
    agent: `kbsync/${options.version} (webhooks)`,
    chance: Math.random,
    onFailed: ({ eventId, endpointId, attempts }, attempt) =>
      log.warn(
        { eventId, endpointId, attempts: attempts + 1, ...attempt },
        "a webhook message did not arrive",
      ),
    onProblem: (error) =>
      log.error({ err: error }, "the queue of webhook messages stands still, tries again"),
  });
  const housekeeping = openHousekeeping({
    store,
    files: kb.files,
    retention: { ...DEFAULT_RETENTION, ...options.retention },
    nowMs,
    onSwept: (swept) => log.debug(swept, "housekeeping"),
    onProblem: (error) => log.error({ err: error }, "housekeeping failed, tries again later"),
  });
  const health = (): Health => ({
    ...healthOf(admission, model, reranker, backfill.isRunning(), options.version),
    languageModel: language?.state() ?? NO_LANGUAGE_MODEL,
  });
  const server = await buildServer(
    {
      kb,
      keyring: openKeyring(
        store,
        nowMs,
        openRateLimiter(options.rate ?? (isLoopback(host) ? undefined : RATE_DEFAULT)),
      ),
      idempotency: openIdempotency(store, nowMs),
      admission,
      log,
      filesNeedKey: options.filesNeedKey ?? false,
      answerIdleMs: limits.answerIdleMs,
      ...(observer && {
        onAnswered: (operation, status, seconds) => observer.request(operation, status, seconds),
      }),
    },
    webhooks,
    health,
    isLoopback(host) ? options.metrics : undefined,
  );

  const close = async (withinMs = limits.drainMs): Promise<void> => {
    const drainMs = Math.round(Math.min(withinMs, limits.drainMs));
    const endMs = performance.now() + drainMs;
    admission.become("draining");
    if ((await admission.empty(drainMs)) === "timeout") {
      log.warn({ drainMs }, "closing with requests under way");
      server.server.closeAllConnections();
    }
    await server.close();
    // What requests left over of the bound: jobs are durable, and one that is broken off is done at the next start.
    await jobs.close(Math.max(0, endMs - performance.now()));
    await webhooks.close();
    await housekeeping.close();
    await backfill.close();
    kb.pages.close();
    await kb.ingest.close();
    await model.close();
    await serving.close();
    await language?.close();
    await reranker?.close();
    await store.close();
  };
  let closing: Promise<void> | undefined;

  return {
    start: async () => {
      const url = await listen(server, host, options.port);
      resourcesUrl ??= url;
      log.debug({ url }, "listening");
      const leftovers = await kb.files.recover(async (token) => (await store.file(token)) !== undefined);
      if (leftovers > 0)
        log.info({ files: leftovers }, "put right the uploads that an earlier run left unfinished");
      admission.become("ready");
      // What an earlier run began and did not end.
      jobs.wake();
      webhooks.courier.wake();
      housekeeping.start();
      // Vectors that an earlier run was making go on. Where nothing has any, no model is looked for.
      if ((await store.servingFingerprints()).length > 0) backfill.wake();
      return { url, port: Number(new URL(url).port) };
    },
    issueKey: async (grant) => {
      const key = generateKey();
      await registerKey(store, key, grant);
      return key;
    },
    acceptKey: (key, grant) => registerKey(store, key, grant),
    knownKey: (key) => store.keyByHash(hashKey(key)),
    routes: () => server.routeTable.routes,
    health,
    figures: async () => {
      const { waiting, oldestMs, failed } = await store.jobFigures(undefined);
      return {
        state: admission.state(),
        requestsUnderWay: admission.underWay(),
        jobsWaiting: waiting,
        oldestJobSeconds: oldestMs === null ? 0 : Math.max(0, (nowMs() - oldestMs) / 1000),
        resourcesFailed: failed,
        models: {
          embedder: model.state().state,
          reranker: reranker?.state().state ?? "off",
          language_model: (language?.state() ?? NO_LANGUAGE_MODEL).state,
        },
      };
    },
    probe: async () => {
      await Promise.allSettled([store.collections(""), store.ensureAccount(LOCAL_ACCOUNT)]);
    },
    close: (withinMs) => (closing ??= close(withinMs)),
  };
}

/** Opens a fetcher whose good fetches are told of. */
function timeFetches(observer: ServiceObserver | undefined, options: FetcherOptions): Fetcher {
  const fetcher = openFetcher(options);
  if (observer === undefined) return fetcher;
  return {
    fetch: async (url, known, take) => {
      const startMs = performance.now();
      const fetched = await fetcher.fetch(url, known, take);
      observer.stage("fetch", (performance.now() - startMs) / 1000);
      return fetched;
    },
  };
}

async function listen(server: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (error) {
    const subject = `${host}:${port}`;
    if (codeOf(error) === "EADDRINUSE") {
      throw new KbsyncError(`cannot listen on ${subject}: another program does`, {
        code: "address_in_use",
        subject,
        hint: "Stop that program or choose another port.",
        cause: error,
      });
    }
    throw new KbsyncError(`cannot listen on ${subject}`, { code: "address_refused", subject, cause: error });
  }
}

function healthOf(
  admission: Admission,
  model: Model,
  reranker: Reranker | undefined,
  isBackfilling: boolean,
  version: string,
): Omit<Health, "languageModel"> {
  const embedder = model.state();
  const judge = reranker?.state() ?? {
    state: "off",
    message: "No reranker is configured; high_accuracy reranks by sentences.",
  };
  return {
    status: admission.state(),
    version,
    embedder,
    reranker: judge,
    tiers: {
      fastest: "words (BM25)",
      moderate: moderateNow(embedder.state),
      high_accuracy: highAccuracyNow(embedder.state, judge.state, isBackfilling),
    },
  };
}

function moderateNow(state: ModelState["state"]): string {
  switch (state) {
    case "off":
    case "unavailable":
      return "words alone (BM25), for want of a model";
    case "failing":
      return "words alone (BM25), while the model fails";
    case "idle":
    case "loading":
    case "ready":
      return "words and meaning (BM25 and vectors, fused)";
  }
}

/** What `high_accuracy` does at present. */
function highAccuracyNow(
  model: ModelState["state"],
  reranker: RerankerState["state"],
  isBackfilling: boolean,
): string {
  const found = moderateNow(model);
  if (reranker === "ready" || reranker === "idle") return `${found}, the best reranked by the reranker`;
  if (model === "off" || model === "unavailable" || model === "failing") return found;
  const pending = isBackfilling ? "; some documents keep their fused place until theirs are embedded" : "";
  return `${found}, the best reranked by their sentences${pending}`;
}

function logBackfill(log: Logger, { chunks, error }: BackfillReport): void {
  if (error === undefined) log.info({ chunks }, "gave vectors to chunks stored without");
  else log.warn({ chunks, err: error }, "stopped giving vectors to chunks stored without; tries again later");
}
