import { z } from "zod";
import { AgentConfig } from "../../wire/agent.ts";
import { isAllowEntry } from "../../lib/public-address.ts";
import { CONTEXT_TOKENS_DEFAULT } from "../../wire/constants.ts";
import { HttpUrl } from "./service.ts";

/** The price of a million tokens, in any currency. */
const Price = z.number().min(0).max(1_000_000);

const modelName = z.string().min(1).max(200).describe("Name of the model at that service.");
const apiKeyFile = z
  .string()
  .min(1)
  .optional()
  .describe(
    "File that holds the service's key, sent as a bearer token; relative to the configuration file. Default: no key is sent.",
  );

/** Schema of `kb.embedding` in the configuration. */
const EmbeddingModel = z
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
const RerankerModel = z.strictObject({
  url: HttpUrl.describe(
    "Whole address of a reranking model in the form of Jina, Cohere, vLLM and TEI, for example `https://api.jina.ai/v1/rerank`. Queries and the best 50 chunks of each search in `high_accuracy` are sent there.",
  ),
  model: modelName,
  apiKeyFile,
});

/** Schema of `kb.languageModel` in the configuration. */
const LanguageModel = z.strictObject({
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

/** A host, an address or a range that may be reached although it is not public. */
const AllowEntry = z
  .string()
  .min(1)
  .max(300)
  .refine(isAllowEntry, { error: "expected a host name, *.name, an address or a range such as 10.0.0.0/8" });

/** Schema of `kb` in the configuration: the rules of the embedded service. */
export const KbSection = z.strictObject({
  embedding: EmbeddingModel.prefault({}).describe(
    "The model that turns text into vectors for `moderate` and `high_accuracy`.",
  ),
  reranker: RerankerModel.optional().describe(
    "A model that reranks the best hits of `high_accuracy`. Default: none; the embedding model compares sentences.",
  ),
  languageModel: LanguageModel.optional().describe(
    "The model that answers questions, and divides documents with strategy `agentic`. Default: none; the builtin agent answers, and documents are divided by meaning.",
  ),
  agents: z
    .array(AgentConfig)
    .max(100)
    .default([])
    .refine((agents) => new Set(agents.map(({ id }) => id)).size === agents.length, {
      error: "expected agents with different ids",
    })
    .describe("Agents that answer questions."),
  allowHosts: z
    .array(AllowEntry)
    .max(1000)
    .default([])
    .describe(
      "Hosts, addresses and ranges that link resources may be fetched from, and webhooks sent to, although they are not public: `wiki.example`, `*.corp.example`, `10.0.0.0/8`. Every key with scope write can read what they serve, every key with scope admin or chat can have messages sent there.",
    ),
  limits: z
    .strictObject({
      requestsPerMinute: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(
          "Requests per minute and key in the long run; further ones get 429 with the seconds to wait. As many may be sent at once after an idle period. Default: unlimited if only this machine reaches the service, else 600, with a burst of 1200.",
        ),
    })
    .prefault({})
    .describe("What each key may ask of the service."),
  unusedFileDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe("Days after which an uploaded file that no resource, thread or queued work uses is removed."),
  ocr: z
    .strictObject({
      languages: z
        .array(
          z
            .string()
            .regex(/^[A-Za-z][A-Za-z0-9_]{1,30}$/, { error: "expected a code such as `eng` or `chi_sim`" }),
        )
        .min(1)
        .max(8)
        .default(["eng"])
        .describe(
          "Languages of text in images and scanned PDFs, as Tesseract codes, the likeliest first. English is in the package; the data of others is looked for in the folder that TESSDATA_PREFIX names. Each one slows reading.",
        ),
    })
    .prefault({})
    .describe("Recognition of text in images and scanned PDFs."),
});
