import { z } from "zod";
import { CONTEXT_TOKENS_DEFAULT } from "../../wire/constants.ts";
import { HttpUrl, Price } from "./values.ts";

const modelName = z.string().min(1).max(200).describe("Name of the model at that service.");
const apiKeyFile = z
  .string()
  .min(1)
  .optional()
  .describe(
    "File that holds the service's key, sent as a bearer token; relative to the configuration file. Default: no key is sent.",
  );

/** Schema of `kb.embedding` in the configuration. */
export const EmbeddingModel = z
  .strictObject({
    baseUrl: HttpUrl.optional().describe(
      "Address of an OpenAI-compatible service up to the version, for example `https://api.openai.com/v1`. The text of every document in `moderate` and `high_accuracy` is sent there. Default: the local model, and nothing leaves the machine.",
    ),
    model: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe(
        "Name of the model at that service. Without baseUrl a local model: one that `kbsync models` lists, which also downloads it, or a folder such as `./my-model`, relative to the configuration file. Default: the packaged model.",
      ),
    apiKeyFile,
  })
  .refine(({ baseUrl, model }) => baseUrl === undefined || model !== undefined, {
    error: "expected the name of the model at baseUrl",
    path: ["model"],
  });

/** Schema of `kb.reranker` in the configuration. */
export const RerankerModel = z.strictObject({
  url: HttpUrl.describe(
    "Whole address of a reranking model in the form of Jina, Cohere, vLLM and TEI, for example `https://api.jina.ai/v1/rerank`. Queries and the best 50 chunks of each search in `high_accuracy` are sent there.",
  ),
  model: modelName,
  apiKeyFile,
});

/** Schema of `kb.languageModel` in the configuration. */
export const LanguageModel = z.strictObject({
  baseUrl: HttpUrl.describe(
    "Address of an OpenAI-compatible service up to the version, for example `https://api.openai.com/v1`. Questions are sent there, with the passages and images that belong to them, and the text of every document with strategy `agentic`.",
  ),
  model: modelName,
  apiKeyFile,
  models: z
    .record(
      z.string().min(1).max(200),
      z.strictObject({
        contextTokens: z
          .int()
          .min(1024)
          .max(10_000_000)
          .default(CONTEXT_TOKENS_DEFAULT)
          .describe("Window in tokens: passages, images, earlier messages and the answer share it."),
        inputPrice: Price.default(0).describe("Price of a million tokens of input, for usage.cost."),
        outputPrice: Price.default(0).describe("Price of a million tokens of output."),
      }),
    )
    .default({})
    .describe("Windows and prices of models, by name."),
});
