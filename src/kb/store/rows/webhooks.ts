import { randomUUID } from "node:crypto";
import type { EventType, ResourceEvent } from "../../../wire/event.ts";
import type { Resource } from "../resources.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import type { ResourceRow } from "./records.ts";
import type { DeliveryBody, Endpoint, NewDelivery } from "../webhooks.ts";

/**
 * Maximum waiting deliveries of one endpoint, and of all addresses that an account's requests name. A further delivery
 * is given up at once.
 */
export const WAITING_MAX = 20_000;
/** Most given up deliveries that an account counts. */
export const FAILED_MAX = 20_000;

/** A row of `webhook_endpoint` with the numbers of its deliveries. */
export interface EndpointRow {
  readonly number: number;
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly description: string;
  readonly events: string;
  readonly secret: string;
  /** SQLite has no booleans. */
  readonly enabled: number | boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly delivered_at: string | null;
  readonly problem: string | null;
  readonly waiting: number;
  readonly failed: number;
}

/** Converts a row to an endpoint. */
export function endpointOf(row: EndpointRow): Endpoint {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    events: JSON.parse(row.events) as string[], // written by this store from an endpoint
    secret: row.secret,
    enabled: row.enabled === 1 || row.enabled === true,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    waiting: row.waiting,
    failed: row.failed,
    deliveredAt: row.delivered_at,
    problem: row.problem,
  };
}

/** A message without its receiver. */
export type Message = Omit<NewDelivery, "to">;

/**
 * Reports whether an endpoint with this list of events, as JSON, subscribes to a type. An empty list is all but `resource.updated`: a
 * renamed folder sends one for each of its files.
 */
export function isWanted(events: string, type: EventType): boolean {
  const wanted = JSON.parse(events) as string[]; // written by this store from a list of strings
  return wanted.includes(type) || (wanted.length === 0 && type !== "resource.updated");
}

/** What an event says of a change besides the resource. */
export interface ChangeFacts {
  /** ISO time. */
  readonly at: string;
  readonly version: number;
  readonly revision: number;
  /** Of the text; null without one. */
  readonly sha256: Buffer | null;
  /** The string `path` of the metadata. */
  readonly path: string | null;
}

/** Returns the facts of a change of a document that has this row after it. */
export function changeFacts({ version, revision, sha256, metadata }: ResourceRow, at: string): ChangeFacts {
  const { path } = JSON.parse(metadata) as UserMetadata; // written by this store from such an object
  return { at, version, revision, sha256, path: typeof path === "string" ? path : null };
}

/** Returns the facts of the removal of a document that had this row before it. */
export function removalFacts(row: ResourceRow, at: string): ChangeFacts {
  return { ...changeFacts(row, at), revision: row.revision + 1, sha256: null };
}

/** Returns the message about a change of a resource, with a new id. */
export function eventMessage(
  type: EventType,
  resource: Omit<Resource, "content">,
  change: ChangeFacts,
): Message {
  return {
    accountId: resource.accountId,
    eventId: newEventId(),
    type,
    body: JSON.stringify(eventOf(type, resource, change)),
    nowMs: Date.parse(change.at),
  };
}

/** Makes a unique `webhook-id`. */
function newEventId(): string {
  return `msg_${randomUUID().replaceAll("-", "")}`;
}

function eventOf(
  type: EventType,
  resource: Omit<Resource, "content">,
  { at: timestamp, version, revision, sha256, path }: ChangeFacts,
): ResourceEvent {
  return {
    type,
    timestamp,
    data: {
      _id: resource.id,
      title: resource.title,
      collectionId: resource.collectionId,
      ownerId: resource.ownerId,
      version,
      revision,
      sha256: sha256?.toString("hex") ?? null,
      path,
      chunks: resource.chunkCount,
      status: type === "resource.deleted" ? "deleted" : resource.status,
      ...(resource.statusMessage === null ? {} : { message: resource.statusMessage }),
    },
  };
}

/** Returns a stored message without what it says about an erased resource; undefined: it has to go, because it is an answer made from it. */
export function erasedMessage(stored: string): string | undefined {
  const message = JSON.parse(stored) as DeliveryBody; // written by this store from one
  if (!message.type.startsWith("resource.")) return undefined;
  return JSON.stringify({ ...message, body: withoutTitle(message.body) });
}

/** Returns an event without title, path and digest of its resource and without the reason of a failure, which may quote the document. */
function withoutTitle(event: string): string {
  const { data, ...head } = JSON.parse(event) as { readonly data: Record<string, unknown> }; // written by `eventOf`
  const { message: _, ...shown } = data;
  return JSON.stringify({ ...head, data: { ...shown, title: "", sha256: null, path: null } });
}
