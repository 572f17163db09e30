import { z } from "zod";
import { Count, Id, Tier } from "./primitives.ts";
import { QueueFigures } from "./webhook.ts";

/** Data of the event `state` of `GET /v1/events` (an addition): the account in numbers. */
export const AccountState = z
  .object({
    collections: z.array(z.object({ _id: Id, details: Tier, resources: Count, chunks: Count })),
    queues: QueueFigures,
  })
  .meta({ id: "AccountState" });
export type AccountState = z.infer<typeof AccountState>;

/** The events of the stream, by name, with their data. */
export const AccountEvents = { state: AccountState };
