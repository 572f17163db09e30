import { z } from "zod";
import { AGENT_ID_CHARS_MAX } from "./agent.ts";
import { answerOf } from "./answers.ts";
import { Annotation, THREAD_ID_CHARS_MAX } from "./chat.ts";
import { Count, Id, Time, WireInteger } from "./primitives.ts";

/** Threads, and turns, per answer at most. */
const THREADS_MAX = 100;
export const TURNS_MAX = 100;
const THREADS_DEFAULT = 50;
const TURNS_DEFAULT = 20;
/** Characters of the question that a list shows. */
export const QUESTION_CHARS = 200;

const agentId = z.string().min(1).max(AGENT_ID_CHARS_MAX);
const threadId = z.string().min(1).max(THREAD_ID_CHARS_MAX);

/** Query string of `GET /v1/threads` (an addition). */
export const ThreadsQuery = z.object({
  agent_id: agentId,
  limit: WireInteger.pipe(z.int().min(1).max(THREADS_MAX)).default(THREADS_DEFAULT),
  cursor: z.string().max(200).optional().describe("nextCursor of the previous page."),
});
export type ThreadsQuery = z.infer<typeof ThreadsQuery>;

/** Query string of `DELETE /v1/threads` (an addition). */
export const ThreadName = z.object({ agent_id: agentId, thread_id: threadId });
export type ThreadName = z.infer<typeof ThreadName>;

/** Query string of `GET /v1/threads/turns` (an addition). */
export const TurnsQuery = ThreadName.extend({
  limit: WireInteger.pipe(z.int().min(1).max(TURNS_MAX)).default(TURNS_DEFAULT),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "expected the nextCursor of the previous page")
    .optional()
    .describe("nextCursor of the previous page, which leads to older turns."),
});
export type TurnsQuery = z.infer<typeof TurnsQuery>;

/** A thread without its turns. */
export const ThreadEntry = z
  .object({
    thread_id: z.string(),
    question: z
      .string()
      .nullable()
      .describe(
        `The first question that is stored, at most ${QUESTION_CHARS} characters. Null: there is none.`,
      ),
    turns: Count,
    usedAt: Time.describe("When a turn or an image was last added."),
  })
  .meta({ id: "Thread" });
export type ThreadEntry = z.infer<typeof ThreadEntry>;

/** Answer of `GET /v1/threads`. */
export const ThreadsAnswer = answerOf(
  z.object({
    threads: z.array(ThreadEntry).describe("The last used first."),
    nextCursor: z.string().nullable(),
  }),
).meta({ id: "ThreadsAnswer" });
export type ThreadsAnswer = z.infer<typeof ThreadsAnswer>;

/** The parts of an answer that people see. */
export const ShownAnswer = z.object({
  content: z.string(),
  model: z.string(),
  annotations: z.array(Annotation),
  images: z.array(z.string()).describe("URLs of the images that were used."),
});
export type ShownAnswer = z.infer<typeof ShownAnswer>;

/** A question of a thread with its answer. */
export const ThreadTurn = ShownAnswer.extend({
  message_id: Id,
  user: z.string().describe("The question."),
  createdAt: Time,
}).meta({ id: "ThreadTurn" });
export type ThreadTurn = z.infer<typeof ThreadTurn>;

/** Answer of `GET /v1/threads/turns`. */
export const TurnsAnswer = answerOf(
  z.object({
    turns: z.array(ThreadTurn).describe("The newest ones, or those before the cursor; oldest first."),
    nextCursor: z.string().nullable().describe("Leads to older turns."),
  }),
).meta({ id: "TurnsAnswer" });
export type TurnsAnswer = z.infer<typeof TurnsAnswer>;

/** Answer of `DELETE /v1/threads`. */
export const ThreadEndAnswer = answerOf(ThreadName).meta({ id: "ThreadEndAnswer" });
