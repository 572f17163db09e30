import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Count, Id, Time } from "./primitives.ts";

/** Most documents of a batch. */
export const BATCH_MAX = 5000;
/** Failures that an answer shows. */
export const BATCH_FAILURES_SHOWN = 100;

const Kind = z
  .enum(["delete", "retry"])
  .describe("`delete` deletes the documents; `retry` takes those in again whose status is error.");
export type BatchKind = z.infer<typeof Kind>;

/** Body of `POST /v1/batches` (an addition). */
export const BatchBody = z
  .object({ kind: Kind, ids: z.array(Id).min(1).max(BATCH_MAX).describe("Ids of documents.") })
  .meta({ id: "BatchBody" });
export type BatchBody = z.infer<typeof BatchBody>;

/** The progress of work on many documents. */
export const Batch = z
  .object({
    _id: Id,
    kind: Kind,
    state: z.enum(["working", "stopped", "done"]),
    total: Count.describe("Documents of the batch."),
    done: Count.describe("Documents that were worked on, the failed ones included."),
    failed: Count,
    createdAt: Time,
    updatedAt: Time,
  })
  .meta({ id: "Batch" });
export type Batch = z.infer<typeof Batch>;

/** A document on which the work failed. */
const BatchFailure = z.object({
  _id: Id,
  title: z.string().nullable().describe("Null: the document is gone."),
  code: z.string(),
  message: z.string(),
});

/** Answer of `POST /v1/batches` and `POST /v1/batches/<id>/stop`. */
export const BatchAnswer = answerOf(Batch).meta({ id: "BatchAnswer" });
export type BatchAnswer = z.infer<typeof BatchAnswer>;

/** Answer of `GET /v1/batches/<id>`. */
export const BatchReadAnswer = answerOf(
  Batch.extend({
    failures: z.array(BatchFailure).describe(`The first ${BATCH_FAILURES_SHOWN}.`),
  }),
).meta({ id: "BatchReadAnswer" });
export type BatchReadAnswer = z.infer<typeof BatchReadAnswer>;

/** Answer of `GET /v1/batches`. */
export const BatchesAnswer = answerOf(
  z.object({
    batches: z.array(Batch).describe("Those that work, and the last ones that ended; newest first."),
  }),
).meta({ id: "BatchesAnswer" });
export type BatchesAnswer = z.infer<typeof BatchesAnswer>;
