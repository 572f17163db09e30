import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { STARTER_MAX } from "../lib/markup/starter-questions.ts";
import { readFitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { MetadataInput } from "./metadata-tool.ts";
import { findSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Arguments of the tool `suggest_questions`. */
export const QuestionsInput = MetadataInput.pick({ source: true, collection: true }).extend({
  limit: z.int().min(1).max(STARTER_MAX).default(50).describe("Maximum number of questions."),
});
export type QuestionsInput = z.infer<typeof QuestionsInput>;

/** Result of the tool `suggest_questions`. */
export const QuestionsOutput = z.object({
  questions: z
    .array(z.object({ question: z.string(), expect: z.string(), answer: z.string().optional() }))
    .describe("As evaluate takes them, spread evenly over the documents; fewer if they do not fit."),
  headings: z.number().describe("Headings to choose from."),
  complete: z.boolean().describe("False: there are more documents than are read for this."),
});
export type QuestionsOutput = z.infer<typeof QuestionsOutput>;

/** Makes questions for an evaluation from the headings of a source's documents. */
export async function suggestQuestions(
  reached: Reached,
  files: KnownFiles,
  { limit, ...choice }: QuestionsInput,
  signal: AbortSignal,
): Promise<ToolOutput<QuestionsOutput>> {
  const { collection_id: collectionId, owner_id: ownerId } = await findSource(reached, files, choice, signal);
  const { entries, ...rest } = await readFitting(limit, async (most) => {
    const starter = await reached.service.starter({ collectionId, ownerId, limit: most }, signal);
    if (starter === undefined)
      throw new KbsyncError("the service makes no questions", {
        code: "eval_unsupported",
        hint: "`kbsync eval --init` on the machine of the folders does.",
      });
    return { entries: starter.questions, headings: starter.headings, complete: starter.isComplete };
  });
  const lines = entries.map(({ question, expect }) => `${question} (${expect})`);
  if (lines.length === 0) lines.push("No heading is in one document alone.");
  return { data: { questions: [...entries], ...rest }, text: lines.join("\n") };
}
