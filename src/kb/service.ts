import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import { addressRules, isLiteral } from "../lib/public-address.ts";
import { openTurns } from "../lib/turns.ts";
import { UPLOAD_BYTES_MAX } from "../wire/upload.ts";
import type { KnowledgePlace, AgentConfig } from "../wire/agent.ts";
import { openChat } from "./chat/chat.ts";
import { openImageReader } from "./chat/image-reader.ts";
import { noticeChatJobs, openChatJobs } from "./chat/job-runner.ts";
import { openFetcher } from "./fetch/fetcher.ts";
import type { ResolveAll } from "./fetch/guarded-dial.ts";
import { guardedConnector } from "./fetch/guarded-dial.ts";
import { openAdmission } from "./http/admission.ts";
import type { Admission } from "./http/admission.ts";
import type { Health } from "./http/health-route.ts";
import { openIdempotency } from "./http/idempotency.ts";
import { openKeyring } from "./http/keyring.ts";
import { openRateLimiter } from "./http/rate.ts";
import type { RateRule } from "./http/rate.ts";
import type { Route } from "./http/route-table.ts";
import { buildServer } from "./http/server.ts";
import { refusalAnswer } from "./http/status.ts";
import { noticeMissingVectors, openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openExtractor } from "./ingest/extract/extract.ts";
import type { OcrOptions } from "./ingest/extract/ocr.ts";
import { openIngest } from "./ingest/ingest.ts";
import { openPageReader } from "./ingest/page/page-reader.ts";
import { openOpenAiModel } from "./models/openai.ts";
import type { ModelFacts } from "./models/price.ts";
import { openModel } from "./ingest/model.ts";
import type { FoundModel, Model, ModelState } from "./ingest/model.ts";
import { DEFAULT_RETENTION, openHousekeeping } from "./resources/housekeeping.ts";
import type { Retention } from "./resources/housekeeping.ts";
import { noticeJobs, openJobRunner } from "./resources/job-runner.ts";
import { fileAddresses, isLoopback } from "./resources/file-address.ts";
import { openFileArea } from "./resources/file-area.ts";
import { generateKey, hashKey, registerKey } from "./resources/keys.ts";
import type { KeyGrant } from "./resources/keys.ts";
import { rememberCollections } from "./resources/knowledge-base.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { Refusal } from "./resources/refusal.ts";
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
  /** Agents and the model they ask. Default: the agent `default` alone, without a model. */
  readonly chat?: Partial<ChatOptions>;
  /** How text in pictures is recognised. */
  readonly ocr?: OcrOptions;
  readonly limits?: Partial<ServiceLimits>;
  readonly nowMs?: () => number;
}

/** What answers questions. */
export interface ChatOptions {
  /** An OpenAI-compatible endpoint; undefined: none, and the builtin agent answers. */
  readonly languageModel: LanguageModelOptions | undefined;
  readonly agents: readonly AgentConfig[];
  /** What the agent `default` reads. */
  readonly defaultKnowledge: readonly KnowledgePlace[];
  /** What is known of models, by name. */
  readonly models: Readonly<Record<string, ModelFacts>>;
  /** Window of a model of which it is not known. */
  readonly contextTokens: number;
  readonly timeoutMs: number;
}

/** Where a language model is. */
export interface LanguageModelOptions {
  readonly baseUrl: string;
  readonly model: string;
  /** The key itself; undefined: none is sent. */
  readonly apiKey: string | undefined;
}

const DEFAULT_CHAT: ChatOptions = {
  languageModel: undefined,
  agents: [],
  defaultKnowledge: [],
  models: {},
  contextTokens: 8192,
  timeoutMs: 120_000,
};

/** Questions an agent and a thread may be asked a minute, where the requests of keys are limited at all. */
const AGENT_RATE: RateRule = { perMinute: 100, burst: 100 };
const THREAD_RATE: RateRule = { perMinute: 20, burst: 20 };

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
  /** Refuses what is new, finishes what is under way within a bound, and closes everything. Idempotent. */
  close(): Promise<void>;
}

/** Composes the service. It answers after `start`. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { log } = options;
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
  const backfill = openBackfill({
    store: options.store,
    model: () => model.get(),
    report: (report) => logBackfill(log, report),
  });
  const store = noticeMessages(
    noticeChatJobs(
      noticeJobs(noticeMissingVectors(options.store, backfill.wake), () => jobs.wake()),
      () => chatJobs.wake(),
    ),
    () => webhooks.courier.wake(),
  );
  let resourcesUrl = options.resourcesUrl;

  const kb: KnowledgeBase = {
    store,
    model,
    ingest: openIngest({
      model,
      extractor: openExtractor(options.ocr === undefined ? {} : { ocr: options.ocr }),
      busy: () => new Refusal("ingest_busy", "Too many documents are waiting to be taken in."),
    }),
    files: await openFileArea(join(options.stateDir, "uploads")),
    addresses: fileAddresses(() => resourcesUrl ?? "", isLoopback(host)),
    fetcher: openFetcher({
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
    nowMs,
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
    onFailed: ({ eventId, attempts }, attempt) =>
      log.warn({ eventId, attempts: attempts + 1, ...attempt }, "a webhook message did not arrive"),
    onProblem: (error) =>
      log.error({ err: error }, "the queue of webhook messages stands still, tries again"),
  });
  const retention = { ...DEFAULT_RETENTION, ...options.retention };
  const rate = options.rate ?? (isLoopback(host) ? undefined : RATE_DEFAULT);
  const { languageModel, ...chatOptions } = { ...DEFAULT_CHAT, ...options.chat };
  const chatModel = languageModel && openOpenAiModel({ ...languageModel, timeoutMs: chatOptions.timeoutMs });
  const factsOf = (name: string): ModelFacts | undefined =>
    Object.hasOwn(chatOptions.models, name) ? chatOptions.models[name] : undefined;
  const imageReader = openImageReader();
  const agentRate = openRateLimiter(rate && AGENT_RATE, "The agent");
  const threadRate = openRateLimiter(rate && THREAD_RATE, "The thread");
  const chat = openChat({
    kb,
    agents: {
      store,
      configured: chatOptions.agents,
      defaultKnowledge: chatOptions.defaultKnowledge,
      nowMs,
    },
    fetcher: openFetcher({
      allow: options.fetchAllow ?? [],
      ...(options.resolveHost === undefined ? {} : { resolve: options.resolveHost }),
      agent: `kbsync/${options.version} (images)`,
      busy: () => new Refusal("ingest_busy", "Too many images are waiting to be fetched."),
      // Counted where they are kept, for all images of a request together.
      bytesMax: Infinity,
    }),
    reader: imageReader,
    answerers: {
      endpoint: chatModel && languageModel && { chat: chatModel, model: languageModel.model },
      ocr: kb.ingest.ocr,
      contextTokensOf: (name) => factsOf(name)?.contextTokens ?? chatOptions.contextTokens,
    },
    factsOf,
    imageDays: retention.threadImageDays,
    allowsHost: webhooks.allowsHost,
    takeTurn: (accountId, agentId, threadId) => {
      agentRate.take(`${accountId}/${agentId}`, nowMs());
      if (threadId !== undefined) threadRate.take(`${accountId}/${agentId}/${threadId}`, nowMs());
    },
  });
  const chatJobs = openChatJobs(kb, chat, (error) =>
    log.error({ err: error }, "the queue of questions stands still, tries again"),
  );
  const housekeeping = openHousekeeping({
    store,
    files: kb.files,
    retention,
    nowMs,
    onSwept: (swept) => log.debug(swept, "housekeeping"),
    onProblem: (error) => log.error({ err: error }, "housekeeping failed, tries again later"),
  });
  const health = (): Health => healthOf(admission, model, options.version);
  const server = await buildServer(
    {
      kb,
      keyring: openKeyring(store, nowMs, openRateLimiter(rate)),
      idempotency: openIdempotency(store, nowMs),
      admission,
      log,
      filesNeedKey: options.filesNeedKey ?? false,
      answerIdleMs: limits.answerIdleMs,
    },
    webhooks,
    chat,
    health,
  );

  const close = async (): Promise<void> => {
    admission.become("draining");
    if ((await admission.empty(limits.drainMs)) === "timeout") {
      log.warn({ drainMs: limits.drainMs }, "closing with requests under way");
      server.server.closeAllConnections();
    }
    await server.close();
    await jobs.close(limits.drainMs);
    await chatJobs.close();
    await chatModel?.close();
    imageReader.close();
    await webhooks.close();
    await housekeeping.close();
    await backfill.close();
    kb.pages.close();
    await kb.ingest.close();
    await model.close();
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
      chatJobs.wake();
      webhooks.courier.wake();
      housekeeping.start();
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
    close: () => (closing ??= close()),
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

function healthOf(admission: Admission, model: Model, version: string): Health {
  const embedder = model.state();
  return {
    status: admission.state(),
    version,
    embedder,
    tiers: {
      fastest: "words (BM25)",
      moderate: moderateNow(embedder.state),
      high_accuracy: "not implemented in this version",
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

function logBackfill(log: Logger, { chunks, error }: BackfillReport): void {
  if (error === undefined) log.info({ chunks }, "gave vectors to chunks stored without");
  else log.warn({ chunks, err: error }, "stopped giving vectors to chunks stored without; tries again later");
}
