import { z } from "zod";
import { answerOf } from "./answers.ts";
import { USAGE_DAYS_MAX, USAGE_HOURS_MAX } from "./constants.ts";
import { Count, Time, WireInteger } from "./primitives.ts";

/** Query string of `GET /v1/usage` (an addition). */
export const UsageQuery = z
  .object({
    step: z
      .enum(["hour", "day"])
      .default("hour")
      .describe("Length of a point. Hours and days are those of UTC."),
    count: WireInteger.pipe(z.int().min(1).max(USAGE_HOURS_MAX))
      .default(24)
      .describe(`Points, the last of which has not ended yet; at most ${USAGE_DAYS_MAX} days.`),
  })
  .refine(({ step, count }) => step === "hour" || count <= USAGE_DAYS_MAX, {
    message: `expected at most ${USAGE_DAYS_MAX} days`,
    path: ["count"],
  });
export type UsageQuery = z.infer<typeof UsageQuery>;

const Latency = z
  .object({ p50Ms: z.number().min(0), p95Ms: z.number().min(0) })
  .describe("Half and 95 % of the searches took no longer, estimated from ranges of some 1 : 2.");

/** An hour or a day. */
export const UsagePoint = z
  .object({
    at: Time.describe("When it began."),
    documents: Count.nullable().describe("Stored at its end. Null: before the first count."),
    queued: Count.describe("Most documents that waited to be processed after their answer."),
    searches: Count,
    latency: Latency.nullable().describe(
      "Of its searches, without the wait for a fresh answer. Null: there were none.",
    ),
    cost: z
      .number()
      .min(0)
      .nullable()
      .describe(
        "What models of other services cost for this account on this day, in the currency of the prices. Null: of an hour, or without a budget (`kb.budget`).",
      ),
    costOfAll: z
      .number()
      .min(0)
      .nullable()
      .describe("The same for all accounts. Null also for another account than `local`."),
  })
  .meta({ id: "UsagePoint" });
export type UsagePoint = z.infer<typeof UsagePoint>;

/** Answer of `GET /v1/usage`. */
export const UsageAnswer = answerOf(
  z.object({ points: z.array(UsagePoint).describe("Oldest first, without a gap.") }),
).meta({ id: "UsageAnswer" });
export type UsageAnswer = z.infer<typeof UsageAnswer>;
