import type { Logger } from "pino";
import { DEFAULT_CHAT } from "./answering.ts";
import { openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openTextModel } from "./ingest/agentic/text-model.ts";
import { openLanguageService } from "./ingest/language-service.ts";
import { openModel } from "./ingest/model.ts";
import { openServing } from "./ingest/serving.ts";
import { openModelHealth } from "./models/model-health.ts";
import { openOpenAiModel } from "./models/openai.ts";
import type { ServiceOptions } from "./options.ts";
import type { SharedTurns } from "./queue/shared-turns.ts";
import { openReranker } from "./search/reranker.ts";
import { isDamage } from "./store/damage.ts";

/** The models of the service. */
export type ServiceModels = ReturnType<typeof openServiceModels>;

/** Opens the models that are configured. */
export function openServiceModels(
  options: ServiceOptions,
  nowMs: () => number,
  steadyMs: () => number,
  turns: Pick<SharedTurns, "runIfFree">,
) {
  return {
    ...openEmbedding(options, steadyMs, turns),
    ...openOtherModels(options, steadyMs),
  };
}

/** Opens the embedding model, the search with an earlier one, and the backfill that replaces its vectors. */
function openEmbedding(
  options: ServiceOptions,
  steadyMs: () => number,
  turns: Pick<SharedTurns, "runIfFree">,
) {
  const { log, observer, store, openEmbedder, openEarlierEmbedder } = options;
  const onTokens = (tokens: number): void => observer?.tokens("embedder", "input", tokens);
  const model = openModel(openEmbedder && (() => openEmbedder(onTokens)), steadyMs, {
    onReady: (fingerprint) => {
      log.info({ fingerprint }, "the embedding model is ready");
      backfill.wake();
    },
    onProblem: (reason, hint) => log.warn({ hint }, reason),
  });
  const openEarlier =
    openEarlierEmbedder && ((fingerprint: string) => openEarlierEmbedder(fingerprint, onTokens));
  const serving = openServing(model, store.index, openEarlier, steadyMs);
  const backfill = openBackfill({
    index: store.index,
    turns,
    textsWait: async () => (await store.queue.figures("ingest", undefined, steadyMs())).texts > 0,
    model: () => model.get(),
    onElsewhere: serving.changedOver,
    onChangedOver: () => {
      serving.changedOver();
      log.info("searches use the new embedding model");
    },
    onLeft: (chunks) => model.noteLeft(chunks),
    ...(observer && { onEmbedded: (seconds) => observer.stage("embed", seconds) }),
    report: (report) => logBackfill(log, report),
  });
  return { model, serving, backfill };
}

/** Opens the reranker and the language model that are configured, and logs when one fails or works again. */
function openOtherModels(options: ServiceOptions, steadyMs: () => number) {
  const { log, observer, languageModel } = options;
  const reranker =
    options.reranker &&
    openReranker({
      ...options.reranker,
      nowMs: steadyMs,
      onChange: (problem) => {
        if (problem === undefined) log.info("the reranker works again");
        else log.warn({ err: problem }, "the reranker fails; high_accuracy reranks by sentences");
      },
    });
  const { timeoutMs } = { ...DEFAULT_CHAT, ...options.chat };
  const endpoint = languageModel && {
    chat: openOpenAiModel({
      ...languageModel,
      timeoutMs,
      onUsage: ({ inputTokens, outputTokens }) => {
        observer?.tokens("language_model", "input", inputTokens);
        observer?.tokens("language_model", "output", outputTokens);
      },
    }),
    model: languageModel.model,
    watch: openModelHealth((name, problem) => {
      if (problem === undefined) log.info({ model: name }, "the language model works again");
      else log.warn({ model: name, err: problem }, "the language model fails; others stand in for it");
    }),
  };
  const language =
    endpoint && openLanguageService(openTextModel(endpoint.chat, endpoint.model), steadyMs, endpoint.watch);
  return { reranker, endpoint, language };
}

function logBackfill(log: Logger, { chunks, error }: BackfillReport): void {
  if (error === undefined) log.debug({ chunks }, "embedded chunks");
  else if (!isDamage(error)) log.warn({ chunks, err: error }, "stopped embedding chunks; retrying later");
}
