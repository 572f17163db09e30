import type { Logger } from "pino";
import { UPLOAD_BYTES_MAX } from "../wire/constants.ts";
import type { ChatOptions } from "./answering.ts";
import type { ConsoleFile } from "./console/pages.ts";
import type { OnTokens } from "./embed/embedder.ts";
import type { ResolveAll } from "./fetch/guarded-dial.ts";
import type { DaemonHandlers } from "./http/routes/daemon-routes.ts";
import type { MetricsText } from "./http/routes/monitoring-routes.ts";
import type { RateRule } from "./http/limits/rate.ts";
import type { OcrOptions } from "./ingest/extract/ocr.ts";
import type { FoundModel } from "./ingest/model.ts";
import type { OpenAiOptions } from "./models/openai.ts";
import type { ServiceObserver } from "./observer.ts";
import type { Retention } from "./resources/housekeeping.ts";
import type { RerankerOptions } from "./search/reranker.ts";
import type { Store } from "./store/store.ts";
import type { FileStorage } from "./uploads/open-files.ts";

/** Options of the service. */
export interface ServiceOptions {
  /** Folder of the state. Created if missing. */
  readonly stateDir: string;
  /** Where uploaded files are. Default: in `uploads/` of the state folder. */
  readonly files?: FileStorage | undefined;
  /** Closed by the service. */
  readonly store: Store;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** Public address of uploaded files, without a trailing slash. Default: the address on which the service listens. */
  readonly resourcesUrl?: string;
  /** Opens the embedding model when it is first needed. Undefined: searches use words alone. */
  readonly openEmbedder?: (onTokens?: OnTokens) => Promise<FoundModel>;
  /**
   * Opens an earlier model by its fingerprint. It serves until the vectors of the model of `openEmbedder` are complete. Undefined: the
   * new model serves at once, with the vectors that exist.
   */
  readonly openEarlierEmbedder?: (fingerprint: string, onTokens?: OnTokens) => Promise<FoundModel>;
  /**
   * The model that answers questions and splits documents with strategy `agentic`. Default: none; the builtin agent answers, and
   * documents are split by meaning.
   */
  readonly languageModel?: LanguageModelOptions;
  /** The reranking model of `high_accuracy`. Default: none; it reranks by sentences. */
  readonly reranker?: Omit<RerankerOptions, "nowMs" | "onChange">;
  readonly log: Logger;
  /** Version in the health answer. */
  readonly version: string;
  /** Non-public hosts, addresses and ranges from which links may be fetched. Default: none. */
  readonly fetchAllow?: readonly string[];
  /** Resolves the names of links and webhooks; set by tests. Default: the system's resolver. */
  readonly resolveHost?: ResolveAll;
  /** Rate of each key. Default: unlimited if only this machine reaches the service, else `RATE_DEFAULT`. */
  readonly rate?: RateRule;
  /** Returns the SHA-256 in hex of a key that is exempt from the default rate; called for each request. Default: none. */
  readonly unratedKey?: () => string | undefined;
  /** Whether uploaded files require a key of their account. Default false: the address is enough. */
  readonly filesNeedKey?: boolean;
  /** Non-public hosts, addresses and ranges to which webhooks may be sent. Default: none. */
  readonly webhookAllow?: readonly string[];
  readonly retention?: Partial<Retention>;
  /** Agents and facts about models. Default: only the agent `default`. */
  readonly chat?: Partial<ChatOptions>;
  /** Options of text recognition. */
  readonly ocr?: OcrOptions;
  readonly limits?: Partial<ServiceLimits>;
  readonly nowMs?: () => number;
  /** Whether other processes use the store too. Default false: a start ends the leases that an earlier process left. */
  readonly sharesStore?: boolean;
  /** Observes the service for metrics. */
  readonly observer?: ServiceObserver;
  /**
   * Returns the answer of `GET /metrics`. The route exists only if `host` and `resourcesUrl` are reachable from this machine alone:
   * metrics cover all accounts, so no account's key may read them. Default: none.
   */
  readonly metrics?: () => Promise<MetricsText>;
  /** The built console. Default: none; `/` is then no address of this service. */
  readonly consoleFiles?: readonly ConsoleFile[];
  /** The operations of a daemon in this process. Default: there is none. */
  readonly daemon?: DaemonHandlers;
}

/** Rate of a key if other machines reach the service: ten requests a second, as a program sends them. */
export const RATE_DEFAULT: RateRule = { perMinute: 600, burst: 1200 };

/** The language model and its endpoint. */
export interface LanguageModelOptions extends Pick<OpenAiOptions, "baseUrl" | "apiKey"> {
  /** Its name at the endpoint. */
  readonly model: string;
}

/** Limits, each with a default. */
export interface ServiceLimits {
  /** Longest text of a resource in bytes. Default 32 MB. */
  readonly contentBytes: number;
  /** Largest upload in bytes. Default 32 MB. */
  readonly uploadBytes: number;
  /** Requests in flight. Default 1024. */
  readonly requests: number;
  /** Bytes of request bodies in flight. Default 256 MB. */
  readonly bodyBytes: number;
  /** Bytes of long answers in flight. Default 256 MB. */
  readonly answerBytes: number;
  /** Creates, updates and uploads in flight. Default 512. */
  readonly ingests: number;
  /** Open connections from one address. Default 512, a quarter of all. */
  readonly connectionsPerAddress: number;
  /**
   * Timeout for receiving a request. Default 5 minutes, in which the slowest supported connection (1 Mbit/s) transfers 32 MB.
   */
  readonly requestMs: number;
  /** How long an answer waits for a client that stops reading. Default 2 minutes. */
  readonly answerIdleMs: number;
  /** How long a close waits for requests in flight. Default 10 s. */
  readonly drainMs: number;
}

/** The default limits. */
export const DEFAULT_LIMITS: ServiceLimits = {
  contentBytes: UPLOAD_BYTES_MAX,
  uploadBytes: UPLOAD_BYTES_MAX,
  requests: 1024,
  bodyBytes: 256 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  ingests: 512,
  connectionsPerAddress: 512,
  requestMs: 300_000,
  answerIdleMs: 120_000,
  drainMs: 10_000,
};
