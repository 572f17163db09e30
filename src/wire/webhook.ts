import { z } from "zod";
import { EventType } from "./event.ts";
import { answerOf } from "./answers.ts";
import { Count, Id, Time, WireInteger } from "./primitives.ts";

/** Longest address of an endpoint in characters. */
const ENDPOINT_URL_CHARS_MAX = 2048;
const ENDPOINT_DESCRIPTION_CHARS_MAX = 500;
/** Longest secret in characters: the prefix and 64 bytes in base64. */
const SECRET_CHARS_MAX = 100;
/** How long an old secret still signs after a rotation. */
const OVERLAP_HOURS_DEFAULT = 24;
const OVERLAP_HOURS_MAX = 168;
const DEAD_PAGE_DEFAULT = 100;
const DEAD_PAGE_MAX = 1000;

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
  })
  .meta({ id: "EndpointChangeBody" });
export type EndpointChangeBody = z.infer<typeof EndpointChangeBody>;

/** Optional body of `POST /v1/webhooks/<id>/rotate`. */
export const RotateSecretBody = z
  .object({
    secret: secret.optional(),
    overlapHours: WireInteger.pipe(z.int().min(0).max(OVERLAP_HOURS_MAX)).default(OVERLAP_HOURS_DEFAULT),
  })
  .meta({ id: "SecretRotateBody" });
export type RotateSecretBody = z.infer<typeof RotateSecretBody>;

/** Query of `GET /v1/webhooks/dead`. */
export const DeadQuery = z.object({
  limit: WireInteger.pipe(z.int().min(1).max(DEAD_PAGE_MAX)).default(DEAD_PAGE_DEFAULT),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "expected a nextCursor of an earlier answer")
    .transform(Number)
    .optional(),
});
export type DeadQuery = z.infer<typeof DeadQuery>;

/** Body of `POST /v1/webhooks/dead/replay`: selects one message, those of one endpoint, or all. */
export const ReplayBody = z
  .object({
    webhookId: z.string().min(1).max(100).optional(),
    endpointId: z.string().min(1).max(100).optional(),
  })
  .meta({ id: "ReplayBody" });
export type ReplayBody = z.infer<typeof ReplayBody>;

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
    /** Waiting messages and dead letters. */
    waiting: Count,
    dead: Count,
    deliveredAt: Time.nullable(),
    /** Why the last attempt failed. */
    problem: z.string().nullable(),
  })
  .meta({ id: "Endpoint" });
export type EndpointRecord = z.infer<typeof EndpointRecord>;

export const EndpointAnswer = answerOf(EndpointRecord).meta({ id: "EndpointAnswer" });
/** Answer of create and rotate, the only ones with the secret. */
export const NewEndpointAnswer = answerOf(
  EndpointRecord.extend({ secret: z.string() }).meta({ id: "NewEndpoint" }),
).meta({ id: "NewEndpointAnswer" });
export const EndpointsAnswer = answerOf(z.object({ endpoints: z.array(EndpointRecord) })).meta({
  id: "EndpointsAnswer",
});
export const TestAnswer = answerOf(z.object({ arrived: z.boolean(), problem: z.string().nullable() })).meta({
  id: "WebhookTestAnswer",
});

/** A dead letter: a message whose delivery was given up. */
export const DeadRecord = z
  .object({
    webhookId: z.string(),
    /** Null if it was addressed by its request. */
    endpointId: z.string().nullable(),
    url: z.string(),
    type: z.string(),
    attempts: Count,
    problem: z.string(),
    createdAt: Time,
  })
  .meta({ id: "DeadLetter" });
export type DeadRecord = z.infer<typeof DeadRecord>;

export const DeadAnswer = answerOf(
  z.object({ dead: z.array(DeadRecord), nextCursor: z.string().nullable() }),
).meta({ id: "DeadLettersAnswer" });
export const ReplayAnswer = answerOf(
  z.object({
    replayed: Count,
    /** Messages that stay because their endpoint is disabled; absent if there are none. */
    disabled: z.int().min(1).optional(),
  }),
).meta({ id: "ReplayAnswer" });

/** The queues of an account. */
export const QueueFigures = z.object({
  ingest: z.object({ waiting: Count, oldestAt: Time.nullable(), failed: Count }),
  webhooks: z.object({ endpoints: Count, waiting: Count, dead: Count }),
  /** Questions with answers by webhook; `failed` counts since the service started. */
  questions: z.object({ waiting: Count, oldestAt: Time.nullable(), failed: Count }),
});
export type QueueFigures = z.infer<typeof QueueFigures>;

/** Answer of `GET /v1/queues`: the queues of the key's account. */
export const QueuesAnswer = answerOf(QueueFigures).meta({ id: "QueuesAnswer" });
export type QueuesAnswer = z.infer<typeof QueuesAnswer>;
