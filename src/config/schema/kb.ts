import { z } from "zod";
import { AgentConfig } from "../../wire/agent.ts";
import { EmbeddingModel, RerankerModel, LanguageModel } from "./models.ts";
import { AllowEntry } from "./values.ts";

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
    .prefault({}),
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
    .prefault({}),
});
