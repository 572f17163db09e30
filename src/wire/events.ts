import { z } from "zod";
import { Count, Id, Tier, Time } from "./primitives.ts";

/** Data of the event `state` of `GET /v1/events` (an addition): the account in numbers. */
export const AccountState = z
  .object({
    collections: z.array(z.object({ _id: Id, details: Tier, resources: Count, chunks: Count })),
    queues: z.object({
      ingest: z.object({ waiting: Count, oldestAt: Time.nullable(), failed: Count }),
      webhooks: z.object({ endpoints: Count, waiting: Count, failed: Count }),
      /** Questions with answers by webhook; `failed` counts since the service started. */
      questions: z.object({ waiting: Count, oldestAt: Time.nullable(), failed: Count }),
    }),
  })
  .meta({ id: "AccountState" });
export type AccountState = z.infer<typeof AccountState>;
