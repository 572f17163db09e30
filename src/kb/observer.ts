import type { Tier } from "../wire/primitives.ts";
import type { QuestionOutcome } from "./chat/job-runner.ts";
import type { IngestStage } from "./ingest/ingest.ts";
import type { LanguageState } from "./ingest/language-service.ts";
import type { ModelState } from "./ingest/model.ts";
import type { RerankerState } from "./search/reranker.ts";
import type { Chunking } from "./store/chunks.ts";
import type { Records } from "./store/records.ts";
import type { Store } from "./store/store.ts";
import type { ServiceState } from "./http/limits/admission.ts";

/** The measured stages of ingesting a document: `fetch` of a link, the stages of ingest, then the write. */
export type MeasuredStage = "fetch" | IngestStage | "store" | "embed";

/** Observes the service for metrics. No argument identifies an account, an owner or a document. */
export interface ServiceObserver {
  /**
   * Called when a request ends. `operation` is the registered method and path, or `other` for an unknown operation. `status` is
   * undefined if the client disconnected before the answer.
   */
  request(operation: string, status: number | undefined, seconds: number): void;
  /** Called when a search is answered. */
  search(tier: Tier, seconds: number): void;
  /** Called when a stage of ingestion succeeds. */
  stage(stage: MeasuredStage, seconds: number): void;
  /** Called when a text was stored, with the number of its chunks. */
  chunks(count: number): void;
  /** Called when a model at an endpoint has answered, with the tokens that the endpoint counts; 0 if it counts none. */
  tokens(model: "embedder" | "language_model", kind: "input" | "output", count: number): void;
  /** Called when a question with a webhook ends. */
  question(outcome: QuestionOutcome): void;
}

/** The current figures of the service. */
export interface ServiceFigures {
  readonly state: ServiceState;
  /** Requests in flight. */
  readonly requestsInFlight: number;
  /** Queued documents of all accounts. */
  readonly jobsWaiting: number;
  /** Age of the oldest of them in seconds; 0 if none waits. */
  readonly oldestJobSeconds: number;
  /** Those that were due ten minutes ago, and that no worker has. */
  readonly jobsOverdue: number;
  /** Queued questions of all accounts, and the age of the oldest in seconds. */
  readonly questionsWaiting: number;
  readonly oldestQuestionSeconds: number;
  /** Messages to webhooks of all accounts: waiting ones, and those given up. */
  readonly messages: { readonly waiting: number; readonly failed: number };
  /** Resources whose last ingestion failed. */
  readonly resourcesFailed: number;
  readonly models: {
    readonly embedder: ModelState["state"];
    readonly reranker: RerankerState["state"];
    readonly language_model: LanguageState["state"];
  };
}

/** Wraps a store to report each write of a text: its duration, and the number of its chunks. */
export function measureWrites(store: Store, observer: Pick<ServiceObserver, "stage" | "chunks">): Store {
  const measured = async <T>(write: () => Promise<T>, { spans }: Chunking): Promise<T> => {
    const startMs = performance.now();
    const written = await write();
    observer.stage("store", (performance.now() - startMs) / 1000);
    observer.chunks(spans.length);
    return written;
  };
  const { records } = store;
  return {
    ...store,
    records: {
      ...records,
      createResource: (resource, chunking, sameTransaction) =>
        measured(() => records.createResource(resource, chunking, sameTransaction), chunking),
      updateResource: (change, chunking, sameTransaction) => {
        const write = (): ReturnType<Records["updateResource"]> =>
          records.updateResource(change, chunking, sameTransaction);
        return chunking === undefined ? write() : measured(write, chunking);
      },
    },
  };
}
