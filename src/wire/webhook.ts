import { z } from "zod";
import { EventType } from "./event.ts";
import { answerOf } from "./answers.ts";
import { Count, Id, Time } from "./primitives.ts";

/** Longest address of an endpoint in characters. */
const ENDPOINT_URL_CHARS_MAX = 2048;
const ENDPOINT_DESCRIPTION_CHARS_MAX = 500;
/** Longest secret in characters: the prefix and 64 bytes in base64. */
const SECRET_CHARS_MAX = 100;

const url = z.string().min(1).max(ENDPOINT_URL_CHARS_MAX);
const description = z.string().max(ENDPOINT_DESCRIPTION_CHARS_MAX);
/** Empty: all types, including those of later versions. */
const events = z.array(EventType).max(EventType.options.length);
const secret = z.string().min(1).max(SECRET_CHARS_MAX);

/** Body of `POST /v1/webhooks`. */
export const EndpointBody = z
  .object({
    url,
    events: events.default([]),
    description: description.default(""),
    /** Default: generated. */
    secret: secret.optional(),
  })
  .meta({ id: "EndpointBody" });
export type EndpointBody = z.infer<typeof EndpointBody>;

/** Body of `PUT /v1/webhooks/<id>`: any subset. */
export const EndpointChangeBody = z
  .object({
    url: url.optional(),
    events: events.optional(),
    description: description.optional(),
    enabled: z.boolean().optional(),
    secret: secret.optional(),
  })
  .meta({ id: "EndpointChangeBody" });
export type EndpointChangeBody = z.infer<typeof EndpointChangeBody>;

/** An endpoint in an answer, without its secret. */
export const EndpointRecord = z
  .object({
    _id: Id,
    url: z.string(),
    events: z.array(z.string()),
    description: z.string(),
    enabled: z.boolean(),
    createdAt: Time,
    updatedAt: Time,
    waiting: Count,
    failed: Count.describe("Messages that were given up in the last 30 days."),
    deliveredAt: Time.nullable(),
    /** Why the last attempt failed. */
    problem: z.string().nullable(),
  })
  .meta({ id: "Endpoint" });
export type EndpointRecord = z.infer<typeof EndpointRecord>;

export const EndpointAnswer = answerOf(EndpointRecord).meta({ id: "EndpointAnswer" });
/** Answer of create, the only one with the secret. */
export const NewEndpointAnswer = answerOf(
  EndpointRecord.extend({ secret: z.string() }).meta({ id: "NewEndpoint" }),
).meta({ id: "NewEndpointAnswer" });
export const EndpointsAnswer = answerOf(z.object({ endpoints: z.array(EndpointRecord) })).meta({
  id: "EndpointsAnswer",
});
export const TestAnswer = answerOf(z.object({ arrived: z.boolean(), problem: z.string().nullable() })).meta({
  id: "WebhookTestAnswer",
});
