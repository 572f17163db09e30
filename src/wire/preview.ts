import { z } from "zod";
import { answerOf } from "./answers.ts";
import { PREVIEW_CHARS_MAX, URL_CHARS_MAX } from "./constants.ts";
import { Count, Strategy } from "./primitives.ts";
import { SettingsBody } from "./resource.ts";

/** Body of `POST /api/rag/chunks/preview` (an addition). Exactly one of `content`, `url` and `doc_id`. */
export const PreviewBody = z
  .object({
    content: z.string().optional(),
    url: z.string().min(1).max(URL_CHARS_MAX).optional().describe("Of an uploaded file, or a link."),
    doc_id: z.string().min(1).max(200).optional().describe("A resource, whose text is split."),
    settings: SettingsBody.optional().describe("Default: those of its fields."),
  })
  .meta({ id: "PreviewBody" });
export type PreviewBody = z.infer<typeof PreviewBody>;

/** A chunk as a text would be split. */
const PreviewChunk = z
  .object({
    start: Count.describe("UTF-16 offset into content of the text after before."),
    end: Count.describe("UTF-16 offset of the end of that text, exclusive."),
    headings: z.array(z.string()).describe("Above the chunk, outermost first."),
    before: z.string().optional().describe("Repeated before the text: the head of a table, or a fence."),
    after: z.string().optional().describe("Repeated after the text."),
  })
  .meta({ id: "PreviewChunk" });

export const PreviewAnswer = answerOf(
  z.object({
    content: z
      .string()
      .describe(`The text that was split, its first ${PREVIEW_CHARS_MAX} characters at most.`),
    isCut: z.boolean().describe("Whether the text is longer."),
    strategyUsed: Strategy.describe("Another than requested if that is not available."),
    chunks: z.array(PreviewChunk).describe("In the order of the text."),
    warning: z.string().optional().describe("Parts of the document that the text lacks, and why."),
  }),
).meta({ id: "PreviewAnswer" });
export type PreviewAnswer = z.infer<typeof PreviewAnswer>;
