import type { Logger } from "pino";
import { openTurns } from "../lib/turns.ts";
import { openFetcher } from "./fetch/fetcher.ts";
import type { Fetcher, FetcherOptions } from "./fetch/fetcher.ts";
import { refusalAnswer } from "./http/operation/status.ts";
import { openExtractor } from "./ingest/extract/extract.ts";
import { openIngest, type Ingest, type IngestParts } from "./ingest/ingest.ts";
import { openMailReader } from "./ingest/mail/mail-reader.ts";
import { openPageReader } from "./ingest/page/page-reader.ts";
import type { ServiceObserver } from "./observer.ts";
import type { ServiceOptions } from "./options.ts";
import { openWaits } from "./queue/waits.ts";
import { cacheCollections } from "./resources/knowledge-base.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { openPending } from "./resources/pending.ts";
import { Refusal } from "./resources/refusal.ts";
import { openModelTurns } from "./search/model-turns.ts";
import type { ServiceModels } from "./service-models.ts";
import type { Store } from "./store/store.ts";
import { fileAddresses } from "./uploads/file-address.ts";
import { openFiles } from "./uploads/open-files.ts";

/** Dependencies of the knowledge base. */
type Given = Pick<
  KnowledgeBase,
  "changeWaits" | "isEnding" | "leases" | "limits" | "nowMs" | "sharedTurns" | "steadyMs"
> & {
  /** Returns the address of the service; undefined before it listens. */
  readonly resourcesUrl: () => string | undefined;
};

/** Opens what the operations of the service work with. */
export async function openKnowledgeBase(
  options: ServiceOptions,
  store: Store,
  { model, serving, reranker, language }: ServiceModels,
  { resourcesUrl, ...given }: Given,
): Promise<KnowledgeBase> {
  const { log, observer } = options;
  const { records, queue, index } = store;
  const { embedderFor } = serving;
  return {
    ...given,
    records,
    queue,
    index,
    scrub: (accountId) => store.scrub(accountId),
    model,
    embedderFor,
    reranker,
    pending: openPending(index, embedderFor, given.steadyMs),
    modelTurns: openModelTurns(() => new Refusal("overloaded", "Too many searches are waiting for a model.")),
    ingest: openPipeline(options, { model, language }),
    files: await openFiles(options.files, options.stateDir, options.log),
    // A service that other machines reach now may have been local when its first files were uploaded.
    addresses: fileAddresses(() => resourcesUrl() ?? "", true),
    fetcher: timeFetches(observer, fetching(options, "link resources")),
    pages: openPageReader(),
    mails: openMailReader(),
    turns: openTurns(),
    jobWaits: openWaits(),
    notices: store.notices,
    collections: cacheCollections(records),
    explain: (error) => explain(error, log),
    ...(observer && { onSearched: (tier, seconds) => observer.search(tier, seconds) }),
  };
}

/** Opens the pipeline from a file to its chunks. */
function openPipeline(
  { log, observer, ocr }: ServiceOptions,
  models: Pick<IngestParts, "model" | "language">,
): Ingest {
  return openIngest({
    ...models,
    onOtherStrategy: (requested, used, reason) =>
      log.info({ asked: requested, used }, `a text was split by another strategy: ${reason}`),
    extractor: openExtractor(ocr === undefined ? {} : { ocr }),
    busy: () => new Refusal("ingest_busy", "Too many documents are waiting to be processed."),
    ...(observer && { onStage: (stage, seconds) => observer.stage(stage, seconds) }),
  });
}

/** Opens a fetcher that reports the duration of successful fetches. */
function timeFetches(observer: ServiceObserver | undefined, options: FetcherOptions): Fetcher {
  const fetcher = openFetcher(options);
  if (observer === undefined) return fetcher;
  return {
    refuse: (url) => fetcher.refuse(url),
    fetch: async (url, take, asked) => {
      const startMs = performance.now();
      const fetched = await fetcher.fetch(url, take, asked);
      observer.stage("fetch", (performance.now() - startMs) / 1000);
      return fetched;
    },
  };
}

/** Returns the options of a fetcher, which names its purpose to the servers that it asks. */
export function fetching(
  { version, fetchAllow, resolveHost }: ServiceOptions,
  purpose: string,
): FetcherOptions {
  return {
    allow: fetchAllow ?? [],
    ...(resolveHost === undefined ? {} : { resolve: resolveHost }),
    busy: () => new Refusal("ingest_busy", "Too many addresses are waiting to be fetched."),
    agent: `kbsync/${version} (${purpose})`,
  };
}

/** Explains a failure as the API would, and logs one that is the service's own. */
function explain(error: unknown, log: Logger): ReturnType<KnowledgeBase["explain"]> {
  const { status, retryAfterSeconds, body } = refusalAnswer(error);
  if (status === 500) log.error({ err: error }, "a document could not be processed");
  return { ...body.error, message: body.message, retryAfterSeconds };
}
