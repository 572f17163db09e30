import type { Logger } from "pino";
import { UPLOAD_BYTES_MAX } from "../wire/upload.ts";
import type { ChatOptions } from "./answering.ts";
import type { ResolveAll } from "./fetch/guarded-dial.ts";
import type { MetricsText } from "./http/monitoring-routes.ts";
import type { RateRule } from "./http/rate.ts";
import type { OcrOptions } from "./ingest/extract/ocr.ts";
import type { FoundModel } from "./ingest/model.ts";
import type { OpenAiOptions } from "./models/openai.ts";
import type { ServiceObserver } from "./observer.ts";
import type { Retention } from "./resources/housekeeping.ts";
import type { RerankerOptions } from "./search/reranker.ts";
import type { Store } from "./store/store.ts";

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
  /**
   * The model that answers questions, and divides documents with strategy `agentic`. Default: none; the builtin agent
   * answers, and documents are divided by meaning.
   */
  readonly languageModel?: LanguageModelOptions;
  /** The model that `high_accuracy` reranks with. Default: none, it reranks by sentences. */
  readonly reranker?: Omit<RerankerOptions, "nowMs" | "onChange">;
  readonly log: Logger;
  /** Told by the health route. */
  readonly version: string;
  /** Hosts, addresses and ranges that links may be fetched from although they are not public. Default none. */
  readonly fetchAllow?: readonly string[];
  /** Resolves the names of links and webhooks; given by tests. Default the system's. */
  readonly resolveHost?: ResolveAll;
  /** The requests each key may send. Default: as many as it likes where nobody else reaches the service, else `RATE_DEFAULT`. */
  readonly rate?: RateRule;
  /** SHA-256 in hex of a key that the default for `rate` does not bind; asked at each request. Default: there is none. */
  readonly unratedKey?: () => string | undefined;
  /** Uploaded files are served only to keys of their account. Default false: whoever has the address can read. */
  readonly filesNeedKey?: boolean;
  /** Hosts, addresses and ranges that webhooks may be sent to although they are not public. Default none. */
  readonly webhookAllow?: readonly string[];
  readonly retention?: Partial<Retention>;
  /** Agents, and what is known of models. Default: the agent `default` alone. */
  readonly chat?: Partial<ChatOptions>;
  /** How text in pictures is recognised. */
  readonly ocr?: OcrOptions;
  readonly limits?: Partial<ServiceLimits>;
  readonly nowMs?: () => number;
  /** Other processes work on the store too. Default false: a start ends the leases that an earlier process left. */
  readonly sharesStore?: boolean;
  /** Notified of what the service does. */
  readonly observer?: ServiceObserver;
  /**
   * What `GET /metrics` answers. The route is there only where this machine alone reaches the service, by `host` and by
   * `resourcesUrl`: metrics are of all accounts together, so that no account's key may open them. Default: there is none.
   */
  readonly metrics?: () => Promise<MetricsText>;
}

/** What a key may send where others than this machine reach the service: ten a second, as a program does. */
export const RATE_DEFAULT: RateRule = { perMinute: 600, burst: 1200 };

/** The language model and where it answers. */
export interface LanguageModelOptions extends Pick<OpenAiOptions, "baseUrl" | "apiKey"> {
  /** As its endpoint names it. */
  readonly model: string;
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
  /** Bytes of long answers under way at once. Default 256 MB. */
  readonly answerBytes: number;
  /** Creates, updates and uploads under way at once. Default 512. */
  readonly ingests: number;
  /** Connections open at once from one address. Default 512, a quarter of all. */
  readonly connectionsPerAddress: number;
  /**
   * How long a request may take to arrive. Of a bulk create, how long may pass without a byte while the service is ready to
   * read on. Default 5 minutes: the slowest line we serve (1 Mbit/s) carries 32 MB in it.
   */
  readonly requestMs: number;
  /** How long a bulk create may take in all. Default 6 hours. */
  readonly bulkMs: number;
  /** How long an answer waits for a client that does not read on. Default 2 minutes. */
  readonly answerIdleMs: number;
  /** How long closing waits for requests under way. Default 10 s. */
  readonly drainMs: number;
}

/** What holds where nobody said otherwise. */
export const DEFAULT_LIMITS: ServiceLimits = {
  contentBytes: UPLOAD_BYTES_MAX,
  uploadBytes: UPLOAD_BYTES_MAX,
  requests: 1024,
  bodyBytes: 256 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  ingests: 512,
  connectionsPerAddress: 512,
  requestMs: 300_000,
  bulkMs: 6 * 3_600_000,
  answerIdleMs: 120_000,
  drainMs: 10_000,
};
