import type { Lease } from "../queue/queue.ts";

/**
 * Registered endpoints and their deliveries, which are jobs of the queue `webhook`. Promises:
 *
 * - An event of a resource is written in the transaction of its change, once for each endpoint that subscribes to it.
 * - A delivery stays until it is settled or its endpoint is removed; its `eventId` never changes.
 */
export interface WebhookRecords {
  /** Throws `too_many_endpoints` at `endpointsMax`. */
  addEndpoint(endpoint: NewEndpoint, endpointsMax: number): Promise<Endpoint>;
  /** Returns undefined if the endpoint does not exist. */
  changeEndpoint(change: EndpointChange): Promise<Endpoint | undefined>;
  /** Removes the endpoint and all its deliveries. Returns false if the endpoint does not exist. */
  removeEndpoint(at: EndpointKey): Promise<boolean>;
  endpoint(at: EndpointKey): Promise<Endpoint | undefined>;
  /** Oldest first. */
  endpoints(accountId: string): Promise<readonly Endpoint[]>;

  /** Queues a message for a registered endpoint, or for the address given with it. */
  addDelivery(delivery: NewDelivery): Promise<void>;
  /**
   * Writes the outcome of an attempt and ends the lease of its job, in one transaction; does neither if the lease was lost.
   * `endpointState` is the state of the endpoint at the attempt: if the endpoint has changed since, a failure says nothing
   * about the new one, and the delivery is due again.
   */
  settleDelivery(job: Lease, outcome: DeliveryOutcome): Promise<void>;
}

export interface EndpointKey {
  readonly accountId: string;
  /** 24 hex digits. */
  readonly id: string;
}

export interface NewEndpoint extends EndpointKey {
  readonly url: string;
  readonly description: string;
  /** Event types it subscribes to; empty: all. */
  readonly events: readonly string[];
  /** `whsec_` and base64. Stored in plain text, because signing needs it. */
  readonly secret: string;
  readonly enabled: boolean;
  readonly nowIso: string;
}

export interface Endpoint extends Omit<NewEndpoint, "nowIso"> {
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Number of waiting deliveries. */
  readonly waiting: number;
  /** Number of deliveries that were given up. */
  readonly failed: number;
  /** Time of the last successful delivery. */
  readonly deliveredAt: string | null;
  /** Why the last attempt failed; null after a success. */
  readonly problem: string | null;
}

export interface EndpointChange extends EndpointKey {
  readonly url?: string;
  readonly description?: string;
  readonly events?: readonly string[];
  readonly secret?: string;
  readonly enabled?: boolean;
  readonly nowIso: string;
}

/** The destination of a message that goes to no registered endpoint. */
export interface DeliveryTarget {
  readonly url: string;
  /** Undefined: messages are not signed. */
  readonly secret?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export interface NewDelivery {
  readonly accountId: string;
  /** The `webhook-id`. */
  readonly eventId: string;
  readonly type: string;
  /** JSON text, sent unchanged. */
  readonly body: string;
  /** Ids of the resources that an answer in the body was made from. */
  readonly reads?: readonly string[];
  readonly to: { readonly endpointId: string } | { readonly target: DeliveryTarget };
  readonly nowMs: number;
}

/** The body of a job of the queue `webhook`, as JSON. The job's line is the id of the endpoint or `ownLine`. */
export interface DeliveryBody {
  readonly type: string;
  readonly body: string;
  /** As in a `NewDelivery`. */
  readonly reads?: readonly string[];
  /** Undefined if it goes to a registered endpoint. */
  readonly target?: DeliveryTarget;
}

/** The `webhook-id` of the message with an answer. */
export function answerEventId(messageId: string): string {
  return `msg_${messageId}`;
}

/** The line of an account's messages to addresses on one host that are given in requests. */
export function ownLine(accountId: string, url: string): string {
  return `${accountId} ${URL.parse(url)?.host ?? ""}`;
}

/** The unit of a line that attempts count against: its endpoint, or the host of the address, across all accounts. */
export function receiverOf(line: string): string {
  return line.slice(line.indexOf(" ") + 1);
}

/** A value that differs after every change of the endpoint by its account. */
export function stateOf({ updatedAt, url }: Pick<Endpoint, "updatedAt" | "url">): string {
  return `${updatedAt} ${url}`;
}

/** The outcome of an attempt. */
export type DeliveryOutcome = {
  readonly nowIso: string;
  readonly endpointState?: string | undefined;
} & (
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly dueMs: number; readonly nowMs: number; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string; readonly disable: boolean }
);
