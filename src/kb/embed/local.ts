import { availableParallelism } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { watchTime, type ChildClock, type TimeLimits } from "../../lib/capped/time-limits.ts";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { entryUrl } from "../../lib/package.ts";
import { callWorker } from "../../lib/worker-calls.ts";
import type { WorkerCalls } from "../../lib/worker-calls.ts";
import { embedderFingerprint } from "./embedding-text.ts";
import type { Embedder } from "./embedder.ts";
import { createBatchQueue } from "./batch-queue.ts";
import { withRecentVectors } from "./recent-vectors.ts";
import type { LocalWorkerData, LocalWorkerMethods } from "./local-worker.ts";
import { readConfiguredModel } from "./model-files.ts";
import type { MissingModel, ModelFiles } from "./model-files.ts";
import { promptsMark } from "./prompts.ts";

/** The folder of the model, and the resources it may use. */
export interface LocalEmbedderOptions {
  /** Folder with `config.json`, `tokenizer.json` and `onnx/`. Default: the packaged model. */
  readonly modelDir?: string;
  /** Threads of the model. Default all cores, at most 4: the backfill pauses while texts are taken in. */
  readonly threads?: number;
  /** Maximum tokens of a batch, padding included. Default 256, see `BATCH_TOKENS`. */
  readonly batchTokens?: number;
  /** Maximum texts of a batch. Default 32. */
  readonly batchTexts?: number;
  /** Limits of a batch, and of loading the model for the first one. The processor time is that of the whole process. */
  readonly batchLimits?: TimeLimits;
}

/** An embedder that runs a model in a worker thread of this process. */
export interface LocalEmbedder extends Embedder {
  readonly kind: "local";
  /** Folder of the model. */
  readonly folder: string;
  /**
   * The same model for searches: its calls overtake all queued batches of `embed`, so they wait for at most one batch. Its
   * `close` does nothing: the worker belongs to the embedder.
   */
  readonly queries: Embedder;
}

/** No usable model. Search by words still works. */
export interface NoModel {
  readonly kind: "no-model";
  /** A sentence for the log and the status. */
  readonly reason: string;
  /** The remedy. */
  readonly hint: string;
}

/**
 * Default of `batchTokens`: one text of full length. On a CPU a larger batch is no faster (bench/embed.ts), and a query would
 * wait longer for the batch before it.
 */
const BATCH_TOKENS = 256;
const BATCH_TEXTS = 32;
/**
 * Default of `batchLimits`, far beyond the 50 ms of a batch and the seconds of loading the model: other threads of the process use
 * processors meanwhile.
 */
const BATCH_LIMITS: TimeLimits = { cpuMs: 60_000, wallMs: 2 * 60_000 };
const PROCESS_CLOCK: ChildClock = {
  isReady: () => true,
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  waitedMs: () => undefined,
};
/** Threads that hang in the model's native code. Nothing but the end of the process ends them, and each may occupy processors. */
const STUCK_MAX = 2;
/** Longest wait at close for the batch in flight: a batch takes about 50 ms, loading the model some seconds. */
const STOP_MS_MAX = 3000;
/** A model of this size gains little from more threads. */
const THREADS_DEFAULT_MAX = 4;

/**
 * Opens an embedder with the configured model, or else the packaged one. Hashes the weights; the first `embed` loads the worker,
 * the library and the weights. Does not throw if the model is missing or damaged.
 *
 * `embed` rejects with `model_failed` if the model cannot run, and with `closed` after `close`.
 */
export async function openLocalEmbedder(options: LocalEmbedderOptions): Promise<LocalEmbedder | NoModel> {
  const found = await readConfiguredModel(options.modelDir);
  return "folder" in found ? embedderOn(found, options) : noModel(found, options);
}

function noModel({ location, problem }: MissingModel, { modelDir }: LocalEmbedderOptions): NoModel {
  const hint =
    modelDir === undefined
      ? "install kbsync from its package, which holds the model, or configure a model folder"
      : "`kbsync models NAME` gets a known model; a folder needs config.json, tokenizer.json and onnx/model_q4.onnx";
  return { kind: "no-model", reason: `no embedding model: ${location} (${problem})`, hint };
}

function embedderOn(model: ModelFiles, options: LocalEmbedderOptions): LocalEmbedder {
  const threads = options.threads ?? Math.min(THREADS_DEFAULT_MAX, availableParallelism());
  const worker = lazyWorker(model, threads, options.batchLimits ?? BATCH_LIMITS);
  const queue = createBatchQueue(worker.run, {
    tokens: options.batchTokens ?? BATCH_TOKENS,
    texts: options.batchTexts ?? BATCH_TEXTS,
    tokensMax: model.tokensMax,
  });
  const { prompts } = model;
  const prompted = (texts: readonly string[], prompt = ""): readonly string[] =>
    prompt === "" ? texts : texts.map((text) => prompt + text);
  const facts = {
    fingerprint: embedderFingerprint(
      `${model.name}/${model.dtype}/${model.weightsSha256.slice(0, 16)}/mean-${model.tokensMax}${promptsMark(prompts)}`,
    ),
    dimensions: model.dimensions,
    tokensMax: model.tokensMax,
  };
  return {
    kind: "local",
    folder: model.folder,
    ...facts,
    queries: {
      ...facts,
      embed: (texts, signal) => queue.embed("urgent", prompted(texts, prompts?.query), signal),
      close: async () => undefined,
    },
    embed: withRecentVectors((texts, signal) =>
      queue.embed("background", prompted(texts, prompts?.passage), signal),
    ),
    close: async () => {
      queue.close(new KbsyncError("the embedder is closed", { code: "closed" }));
      await worker.stop();
    },
  };
}

/** A worker that the first batch starts, and restarts after a crash or a hang. */
function lazyWorker(model: ModelFiles, threads: number, limits: TimeLimits) {
  let started: { readonly worker: Worker; readonly calls: WorkerCalls<LocalWorkerMethods> } | undefined;
  /** The latest batch, in flight or finished. */
  let latest: Promise<unknown> | undefined;
  /** Terminated threads that have not ended. */
  let stuck = 0;

  const start = () => {
    if (stuck >= STUCK_MAX)
      throw failureOf(model, new Error("its earlier threads hang; restart the service"));
    const { folder, weightsFile, tokensMax, dimensions } = model;
    const worker = new Worker(entryUrl("kb/embed/local-worker"), {
      workerData: { folder, weightsFile, threads, tokensMax, dimensions } satisfies LocalWorkerData,
      name: "embed",
    });
    const calls = callWorker<LocalWorkerMethods>(worker, "embedding");
    worker.once("exit", () => {
      if (started?.worker === worker) started = undefined;
    });
    return { worker, calls };
  };

  /** Embeds a batch. Leaves a thread that exceeds the limits, and lets the next batch start another one. */
  const embed = async (calls: WorkerCalls<LocalWorkerMethods>, texts: readonly string[]) => {
    const hang = Promise.withResolvers<never>();
    const watch = watchTime(limits, PROCESS_CLOCK, (_, measured) => {
      started = undefined;
      stuck += 1;
      void calls.terminate().finally(() => (stuck -= 1));
      hang.reject(new Error(`it ${measured}`));
    });
    try {
      return await Promise.race([calls.call("embed", texts), hang.promise]);
    } finally {
      watch.stop();
    }
  };

  return {
    run: async (texts: readonly string[]): Promise<readonly Float32Array[]> => {
      started ??= start();
      const { worker, calls } = started;
      worker.ref(); // a call in flight keeps the process alive, an idle model does not
      try {
        const batch = embed(calls, texts);
        latest = batch;
        const vectors = await batch;
        return texts.map((_, i) => vectors.slice(i * model.dimensions, (i + 1) * model.dimensions));
      } catch (cause) {
        throw failureOf(model, cause);
      } finally {
        worker.unref();
      }
    },
    stop: async (): Promise<void> => {
      // Lets the batch finish, which is short: the model's native threads would outlive a worker terminated mid-batch.
      const timeout = new AbortController();
      const timer = pause(STOP_MS_MAX, undefined, { signal: timeout.signal, ref: false });
      await Promise.race([latest, timer]).catch(() => undefined);
      timeout.abort();
      await timer.catch(() => undefined);
      await started?.calls.terminate();
    },
  };
}

function failureOf({ folder }: ModelFiles, cause: unknown): KbsyncError {
  return new KbsyncError(`the embedding model failed: ${messageOf(cause)}`, {
    code: "model_failed",
    subject: folder,
    hint: "search by words still works; check the model folder and the free memory",
    cause,
  });
}
