import type { Logger } from "pino";
import { DEFAULT_CHAT } from "./answering.ts";
import type { TokenMeter } from "./embed/remote.ts";
import { openBackfill } from "./ingest/backfill.ts";
import type { BackfillReport } from "./ingest/backfill.ts";
import { openTextModel } from "./ingest/agentic/text-model.ts";
import { openLanguageService } from "./ingest/language-service.ts";
import { openModel } from "./ingest/model.ts";
import { openServing } from "./ingest/serving.ts";
import { openBudget, type Budget } from "./models/budget.ts";
import type { ChatModel } from "./models/chat-model.ts";
import { meteredModel } from "./models/metered.ts";
import { openModelHealth } from "./models/model-health.ts";
import { openOpenAiModel } from "./models/openai.ts";
import type { ServiceOptions } from "./options.ts";
import type { SharedTurns } from "./queue/shared-turns.ts";
import { Refusal } from "./resources/refusal.ts";
import { openReranker } from "./search/reranker.ts";
import { isDamage } from "./store/damage.ts";

/** The models of the service, and the cap on what they cost. */
export type ServiceModels = ReturnType<typeof openServiceModels>;

/** Opens the models that are configured. */
export function openServiceModels(
  options: ServiceOptions,
  nowMs: () => number,
  steadyMs: () => number,
  turns: Pick<SharedTurns, "runIfFree">,
) {
  const budget = budgetOf(options, nowMs);
  return {
    budget,
    ...openEmbedding(options, steadyMs, budget, turns),
    ...openOtherModels(options, steadyMs, budget),
  };
}

/** Opens the cap on what models cost; undefined: there is none. */
function budgetOf({ budget, store }: ServiceOptions, nowMs: () => number): Budget | undefined {
  if (budget?.perDay === undefined && budget?.perMonth === undefined) return undefined;
  const hint = "It is set in kb.budget of the service's configuration.";
  return openBudget({
    ...budget,
    records: store.records,
    refuse: (message, retryAfterSeconds) => new Refusal("budget_spent", message, { hint, retryAfterSeconds }),
    nowMs,
  });
}

/** Counts tokens as what they cost. */
function meterOf(budget: Budget | undefined, price: number | undefined): TokenMeter | undefined {
  if (budget === undefined || price === undefined) return undefined;
  const costOf = (tokens: number): number => (tokens / 1_000_000) * price;
  return {
    reserve: async (tokensMax, accountId) => {
      const settle = await budget.reserve("embedding", costOf(tokensMax), accountId);
      return (tokens) => settle(costOf(tokens));
    },
  };
}

/** Opens the embedding model, the search with an earlier one, and the backfill that replaces its vectors. */
function openEmbedding(
  options: ServiceOptions,
  steadyMs: () => number,
  budget: Budget | undefined,
  turns: Pick<SharedTurns, "runIfFree">,
) {
  const { log, observer, store, openEmbedder, openEarlierEmbedder } = options;
  const meter = meterOf(budget, options.budget?.embeddingPrice);
  const model = openModel(openEmbedder && (() => openEmbedder(meter)), steadyMs, {
    onReady: (fingerprint) => {
      log.info({ fingerprint }, "the embedding model is ready");
      backfill.wake();
    },
    onProblem: (reason, hint) => log.warn({ hint }, reason),
  });
  const serving = openServing(
    model,
    store.index,
    openEarlierEmbedder && ((fingerprint) => openEarlierEmbedder(fingerprint, meter)),
    steadyMs,
  );
  const backfill = openBackfill({
    index: store.index,
    turns,
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
function openOtherModels(options: ServiceOptions, steadyMs: () => number, budget: Budget | undefined) {
  const { log, languageModel } = options;
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
  const { timeoutMs, models } = { ...DEFAULT_CHAT, ...options.chat };
  const metered = (chat: ChatModel): ChatModel =>
    budget === undefined
      ? chat
      : meteredModel(chat, budget, (name) => (Object.hasOwn(models, name) ? models[name] : undefined));
  const endpoint = languageModel && {
    chat: metered(openOpenAiModel({ ...languageModel, timeoutMs })),
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
