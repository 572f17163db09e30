import type { Tier } from "../wire/primitives.ts";
import type { QuestionOutcome } from "./chat/job-runner.ts";
import type { IngestStage } from "./ingest/ingest.ts";
import type { LanguageState } from "./ingest/language-service.ts";
import type { ModelState } from "./ingest/model.ts";
import type { RerankerState } from "./search/reranker.ts";
import type { Store } from "./store/store.ts";
import type { ServiceState } from "./http/admission.ts";

/** What taking a document in consists of, as it is measured: `fetch` a link, then the stages of ingest, then the write. */
export type MeasuredStage = "fetch" | IngestStage | "store";

/** Notified of what the service does, for whoever measures it. Nothing here names an account, an owner or a document. */
export interface ServiceObserver {
  /**
   * A request is over. `operation` is method and path as registered, `other` where there is no such operation; `status`
   * is undefined where the client went away before the answer.
   */
  request(operation: string, status: number | undefined, seconds: number): void;
  /** A search was answered. */
  search(tier: Tier, seconds: number): void;
  /** A stage of taking a document in went well. */
  stage(stage: MeasuredStage, seconds: number): void;
  /** A question is over whose answer goes to a webhook. */
  question(outcome: QuestionOutcome): void;
}

/** Where the service stands, as of now. */
export interface ServiceFigures {
  readonly state: ServiceState;
  /** Requests that were let in and have no answer yet. */
  readonly requestsUnderWay: number;
  /** Documents that wait to be taken in after their answer, of all accounts. */
  readonly jobsWaiting: number;
  /** Age of the oldest of them in seconds; 0 where none waits. */
  readonly oldestJobSeconds: number;
  /** Questions that wait for an answer by webhook, of all accounts, and the age of the oldest of them in seconds. */
  readonly questionsWaiting: number;
  readonly oldestQuestionSeconds: number;
  /** Messages to webhooks, of all accounts: those on their way, and those that were given up and wait to be replayed. */
  readonly messages: { readonly waiting: number; readonly dead: number };
  /** Resources whose last text could not be taken in. */
  readonly resourcesFailed: number;
  readonly models: {
    readonly embedder: ModelState["state"];
    readonly reranker: RerankerState["state"];
    readonly language_model: LanguageState["state"];
  };
}

/** The same store; `onStored` hears how long it took to write a text with its chunks. */
export function timeWrites(store: Store, onStored: (seconds: number) => void): Store {
  const timed = async <T>(write: () => Promise<T>): Promise<T> => {
    const startMs = performance.now();
    const written = await write();
    onStored((performance.now() - startMs) / 1000);
    return written;
  };
  return {
    ...store,
    createResource: (resource, chunking, sameTransaction) =>
      timed(() => store.createResource(resource, chunking, sameTransaction)),
    updateResource: (change, chunking, sameTransaction) => {
      const write = (): ReturnType<Store["updateResource"]> =>
        store.updateResource(change, chunking, sameTransaction);
      return chunking === undefined ? write() : timed(write);
    },
  };
}
