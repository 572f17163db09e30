import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import { openTurns } from "../lib/turns.ts";
import { UPLOAD_BYTES_MAX } from "../wire/upload.ts";
import { openAdmission } from "./http/admission.ts";
import type { Admission } from "./http/admission.ts";
import type { Health } from "./http/health-route.ts";
import { openIdempotency } from "./http/idempotency.ts";
import { openKeyring } from "./http/keyring.ts";
import { buildServer } from "./http/server.ts";
import { noticeMissingVectors, openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openExtractor } from "./ingest/extract/extract.ts";
import { openIngest } from "./ingest/ingest.ts";
import { openModel } from "./ingest/model.ts";
import type { FoundModel, Model, ModelState } from "./ingest/model.ts";
import { fileAddresses, isLoopback } from "./resources/file-address.ts";
import { openFileArea } from "./resources/file-area.ts";
import { generateKey, registerKey } from "./resources/keys.ts";
import type { KeyGrant } from "./resources/keys.ts";
import { rememberCollections } from "./resources/knowledge-base.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { Refusal } from "./resources/refusal.ts";
import type { KeyRecord, Store } from "./store/store.ts";

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
  /** Uploaded files are served only to keys of their account. Default false: whoever has the address can read. */
  readonly filesNeedKey?: boolean;
  readonly limits?: Partial<ServiceLimits>;
  readonly nowMs?: () => number;
}

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
  /** How long closing waits for requests under way. Default 10 s. */
  readonly drainMs: number;
}

const DEFAULT_LIMITS: ServiceLimits = {
  contentBytes: UPLOAD_BYTES_MAX,
  uploadBytes: UPLOAD_BYTES_MAX,
  requests: 1024,
  bodyBytes: 256 * 1024 * 1024,
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
  const store = noticeMissingVectors(options.store, backfill.wake);
  let resourcesUrl = options.resourcesUrl;

  const kb: KnowledgeBase = {
    store,
    model,
    ingest: openIngest({
      model,
      extractor: openExtractor(),
      busy: () => new Refusal("ingest_busy", "Too many documents are waiting to be taken in."),
    }),
    files: await openFileArea(join(options.stateDir, "uploads")),
    addresses: fileAddresses(() => resourcesUrl ?? "", isLoopback(host)),
    turns: openTurns(),
    collections: rememberCollections(store),
    limits,
    nowMs,
  };
  const health = (): Health => healthOf(admission, model, options.version);
  const server = await buildServer(
    {
      kb,
      keyring: openKeyring(store, nowMs),
      idempotency: openIdempotency(store, nowMs, (error) =>
        log.warn({ err: error }, "an answer was sent but not kept for its Idempotency-Key"),
      ),
      admission,
      log,
      filesNeedKey: options.filesNeedKey ?? false,
    },
    health,
  );

  const close = async (): Promise<void> => {
    admission.become("draining");
    if ((await admission.empty(limits.drainMs)) === "timeout") {
      log.warn({ drainMs: limits.drainMs }, "closing with requests under way");
      server.server.closeAllConnections();
    }
    await server.close();
    await backfill.close();
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
      return { url, port: Number(new URL(url).port) };
    },
    issueKey: async (grant) => {
      const key = generateKey();
      await registerKey(store, key, grant);
      return key;
    },
    acceptKey: (key, grant) => registerKey(store, key, grant),
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
