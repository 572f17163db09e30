import type { Lease } from "../queue/queue.ts";

/**
 * Registered endpoints and their deliveries, which are jobs of the queue `webhook`. Promises:
 *
 * - An event of a resource is written in the transaction of the change it tells of, once for each endpoint that wants it.
 * - A delivery stays until it is settled or its endpoint is removed; its `eventId` never changes.
 */
export interface WebhookStore {
  /** Throws `too_many_endpoints` at `endpointsMax`. */
  addEndpoint(endpoint: NewEndpoint, endpointsMax: number): Promise<Endpoint>;
  /** Undefined: no such endpoint. */
  changeEndpoint(change: EndpointChange): Promise<Endpoint | undefined>;
  /** With all its deliveries. False: no such endpoint. */
  removeEndpoint(at: EndpointKey): Promise<boolean>;
  endpoint(at: EndpointKey): Promise<Endpoint | undefined>;
  /** By age. */
  endpoints(accountId: string): Promise<readonly Endpoint[]>;

  /** Puts a message of whatever kind into the queue: for a registered endpoint, or for an address given with it. */
  addDelivery(delivery: NewDelivery): Promise<void>;
  /**
   * Writes what came of an attempt, and ends the lease of its job: together, or neither where the lease was lost.
   * `endpointState` is that of the endpoint as it was sent to: where the endpoint changed since, a failure says nothing about
   * it, and the delivery is due again.
   */
  settleDelivery(job: Lease, outcome: DeliveryOutcome): Promise<void>;
  /** Dead letters of an account, newest first, those older than `beforeNumber`. */
  deadDeliveries(query: DeadQuery): Promise<readonly DeadDelivery[]>;
  /** Lets dead letters be tried anew: one, those of one endpoint, or all of the account; none of disabled endpoints. */
  replayDeliveries(query: ReplayQuery): Promise<Replayed>;
}

export interface EndpointKey {
  readonly accountId: string;
  /** 24 hex digits. */
  readonly id: string;
}

/** A signing secret. Kept as it is: signing needs it. */
export interface SigningSecret {
  /** `whsec_` and base64. */
  readonly secret: string;
  /** Signs no more from then on; null: the one in force. */
  readonly untilMs: number | null;
}

export interface NewEndpoint extends EndpointKey {
  readonly url: string;
  readonly description: string;
  /** Types of events it wants; none: all. */
  readonly events: readonly string[];
  readonly secrets: readonly SigningSecret[];
  readonly enabled: boolean;
  readonly nowIso: string;
}

export interface Endpoint extends Omit<NewEndpoint, "nowIso"> {
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Deliveries that wait. */
  readonly waiting: number;
  readonly dead: number;
  /** When a delivery last arrived. */
  readonly deliveredAt: string | null;
  /** Why the last attempt failed; null after one that did not. */
  readonly problem: string | null;
}

export interface EndpointChange extends EndpointKey {
  readonly url?: string;
  readonly description?: string;
  readonly events?: readonly string[];
  readonly secrets?: readonly SigningSecret[];
  readonly enabled?: boolean;
  readonly nowIso: string;
}

/** Where a message goes that no registered endpoint waits for. */
export interface DeliveryTarget {
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface NewDelivery {
  readonly accountId: string;
  /** The `webhook-id`. */
  readonly eventId: string;
  readonly type: string;
  /** JSON text, sent as it is. */
  readonly body: string;
  readonly to: { readonly endpointId: string } | { readonly target: DeliveryTarget };
  readonly nowMs: number;
}

/** What a job of the queue `webhook` brings; its line is the id of the endpoint or `ownLine`. */
export interface DeliveryBody {
  readonly type: string;
  readonly body: string;
  /** Undefined where it goes to a registered endpoint. */
  readonly target?: DeliveryTarget;
}

/** The line of messages that an account sends to addresses of their own on one host. */
export function ownLine(accountId: string, url: string): string {
  return `${accountId} ${URL.parse(url)?.host ?? ""}`;
}

/** What bounds the attempts of a line: its endpoint, or the host of an address of a message's own, whoever sends to it. */
export function receiverOf(line: string): string {
  return line.slice(line.indexOf(" ") + 1);
}

/** Another one after every change of the endpoint by its account. */
export function stateOf({ updatedAt, url }: Pick<Endpoint, "updatedAt" | "url">): string {
  return `${updatedAt} ${url}`;
}

/** What came of an attempt. */
export type DeliveryOutcome = {
  readonly nowIso: string;
  readonly endpointState?: string | undefined;
} & (
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly dueMs: number; readonly nowMs: number; readonly problem: string }
  | { readonly kind: "dead"; readonly problem: string; readonly disable: boolean }
);

export interface DeadQuery {
  readonly accountId: string;
  readonly beforeNumber: number | undefined;
  readonly limit: number;
}

export interface DeadDelivery {
  readonly number: number;
  /** Null where it went to an address of its own. */
  readonly endpointId: string | null;
  readonly url: string;
  readonly eventId: string;
  readonly type: string;
  readonly attempts: number;
  readonly problem: string;
  readonly createdMs: number;
}

export interface ReplayQuery {
  readonly accountId: string;
  /** By `webhook-id`. */
  readonly eventId: string | undefined;
  readonly endpointId: string | undefined;
  readonly nowMs: number;
}

export interface Replayed {
  readonly replayed: number;
  /** Dead letters that were asked for and stay, for their endpoint is disabled. */
  readonly disabled: number;
}
