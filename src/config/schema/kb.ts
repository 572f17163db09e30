import { z } from "zod";
import { AgentConfig } from "../../wire/agent.ts";
import { EmbeddingModel, RerankerModel, LanguageModel, ChatSection } from "./models.ts";
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
  chat: ChatSection.prefault({}),
  fetch: z
    .strictObject({
      allow: z
        .array(AllowEntry)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that link resources may be fetched from although they are not public: `wiki.example`, `*.corp.example`, `10.0.0.0/8`. Every key with scope write can read what they serve.",
        ),
    })
    .prefault({}),
  limits: z
    .strictObject({
      requestsPerMinute: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(
          "Requests per minute and key in the long run; further ones get 429 with the seconds to wait. Default: unlimited if only this machine reaches the service, else 600, with a burst of 1200.",
        ),
      burst: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe("Requests that a key may send at once after an idle period. Default: requestsPerMinute."),
      ingests: z
        .int()
        .min(1)
        .max(1024)
        .default(512)
        .describe("Concurrent creates, updates and uploads; further ones get 503 with the seconds to wait."),
      connectionsPerAddress: z
        .int()
        .min(1)
        .max(2048)
        .default(512)
        .describe(
          "Open connections from one address, or one /64 of IPv6; further ones are closed. Behind a proxy all come from its address: 2048 leaves the limit to it.",
        ),
    })
    .prefault({}),
  webhooks: z
    .strictObject({
      allow: z
        .array(AllowEntry)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that webhooks may be sent to although they are not public: `127.0.0.1`, `*.corp.example`, `10.0.0.0/8`. Every key with scope admin can have messages sent there.",
        ),
    })
    .prefault({}),
  retention: z
    .strictObject({
      unusedFileDays: z
        .number()
        .min(0)
        .max(3650)
        .default(7)
        .describe("Days after which an uploaded file that no resource uses is removed."),
      deletedRecordDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe(
          "Days for which records of deleted resources stay readable; their text is removed at once.",
        ),
      threadImageDays: z
        .number()
        .min(0)
        .max(3650)
        .default(7)
        .describe("Days for which questions can refer to earlier images of a thread."),
      threadDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe("Days after its last message when a thread is removed."),
    })
    .prefault({}),
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
          "Languages of text in images and scanned PDFs, as Tesseract codes, the likeliest first. English is in the package; others need dataDir. Each one slows reading.",
        ),
      dataDir: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Folder with the data of each language, English too: `CODE.traineddata`, or all of them as `CODE.traineddata.gz`; relative to the configuration file. Nothing is ever downloaded.",
        ),
      pagesMax: z
        .int()
        .min(0)
        .max(10_000)
        .default(100)
        .describe(
          "Most pages per document whose text is recognised, at some seconds each. Of a longer PDF the first ones are read, and `metadata.warning` of the resource names the others; a longer image is refused. 0: no text recognition, and pages without a text layer add nothing.",
        ),
    })
    .prefault({}),
  resources: z
    .strictObject({
      requireKey: z
        .boolean()
        .optional()
        .describe(
          "Serve uploaded files only to keys of their account. Default: false, the address with its 256 random bits suffices, as at the hosted service. Required if service.host or service.publicUrl opens the service to other machines.",
        ),
    })
    .prefault({}),
});
