import type { Budget, Settle } from "./budget.ts";
import type { ChatModel, ModelRequest } from "./chat-model.ts";
import { ModelFailure } from "./model-failure.ts";
import { costOf, NO_USAGE, type ModelFacts } from "./price.ts";

/** Most tokens of an answer that a reservation counts; a longer answer is counted when it ends. */
const OUTPUT_TOKENS_MAX = 8192;
/** Most tokens of an image, as models count them. */
const IMAGE_TOKENS_MAX = 6000;
/** Characters of a token, for an endpoint that reports no usage. */
const TOKEN_CHARS = 4;

/** Counts the answers of priced models against a budget. Their calls throw what the budget throws. */
export function meteredModel(
  chat: ChatModel,
  budget: Budget,
  factsOf: (model: string) => ModelFacts | undefined,
): ChatModel {
  return {
    answer: async (request, call) => {
      const facts = factsOf(request.model);
      if (facts === undefined) return chat.answer(request, call);
      const inputMax = inputTokensMax(request);
      const inputTokens = Math.min(inputMax, facts.contextTokens ?? inputMax);
      const most = { ...NO_USAGE, inputTokens, outputTokens: OUTPUT_TOKENS_MAX };
      const settle = await budget.reserve("chat", costOf(most, facts), call.accountId);
      try {
        const answer = await chat.answer(request, call);
        const { usage, text } = answer;
        const isReported = usage.inputTokens + usage.outputTokens > 0;
        const guess = {
          inputTokens: Math.ceil(inputMax / TOKEN_CHARS),
          outputTokens: Math.ceil(text.length / TOKEN_CHARS),
        };
        await settle(costOf(isReported ? usage : { ...NO_USAGE, ...guess }, facts));
        return answer;
      } catch (error) {
        await settleFailed(error, settle, facts, costOf(most, facts));
        throw error;
      }
    },
    close: () => chat.close(),
  };
}

/** An endpoint that refuses a request charges nothing for it. What others charge is unknown: the reservation counts. */
async function settleFailed(
  error: unknown,
  settle: Settle,
  facts: ModelFacts,
  reserved: number,
): Promise<void> {
  if (!(error instanceof ModelFailure)) return settle(reserved);
  if (error.usage !== undefined) return settle(costOf(error.usage, facts));
  await settle(error.kind === "refused" ? 0 : reserved);
}

/** A token has at least one byte. */
function inputTokensMax({ messages }: ModelRequest): number {
  return messages.reduce(
    (sum, { text, images = [] }) => sum + Buffer.byteLength(text) + images.length * IMAGE_TOKENS_MAX,
    0,
  );
}
