/**
 * Registered endpoints and the queue of deliveries. Promises:
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
   * Deliveries due by then, at most so many of one endpoint, none of `underWay`: those that are tried again, then new ones, both
   * oldest first. New ones are due whatever the clock says. Those to addresses of their own count as of one endpoint together:
   * `fullHosts` and `fullAccounts` leave out those for which there is no room.
   */
  dueDeliveries(query: DueQuery): Promise<readonly Delivery[]>;
  /**
   * Makes due what is to wait longer than it can have been meant to, which the clock says after it was set back: after the first,
   * second, … attempt at most so long, the last for all further.
   */
  limitDeliveryWaits(nowMs: number, longestMs: readonly number[]): Promise<void>;
  /** When the next delivery is due; undefined where none waits. */
  nextDeliveryMs(): Promise<number | undefined>;
  /** What came of an attempt. Settling one that is gone does nothing. */
  settleDelivery(outcome: DeliveryOutcome): Promise<void>;
  /** Dead letters of an account, newest first, those older than `beforeNumber`. */
  deadDeliveries(query: DeadQuery): Promise<readonly DeadDelivery[]>;
  /** Lets dead letters be tried anew: one, those of one endpoint, or all of the account; none of disabled endpoints. */
  replayDeliveries(query: ReplayQuery): Promise<Replayed>;
  /** Of one account, or of all. */
  deliveryFigures(accountId: string | undefined): Promise<DeliveryFigures>;
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

export interface Delivery {
  readonly number: number;
  readonly accountId: string;
  /** Undefined where it goes to an address of its own. */
  readonly endpointId: string | undefined;
  readonly enabled: boolean;
  /** Changes with every change of the endpoint; undefined where it goes to an address of its own. */
  readonly endpointState: string | undefined;
  readonly target: DeliveryTarget;
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
  /** Attempts so far. */
  readonly attempts: number;
}

export interface DueQuery {
  readonly nowMs: number;
  readonly perEndpoint: number;
  readonly underWay: readonly number[];
  /** Hosts, as `URL.host` has them, of addresses that no message is asked for. */
  readonly fullHosts: readonly string[];
  /** Accounts whose messages are not asked for. Default: none. */
  readonly fullAccounts?: readonly string[];
}

/**
 * What came of an attempt. `endpointState` is that of the delivery as it was sent: where the endpoint was changed since, a
 * failure says nothing of it, and the delivery is due again.
 */
export type DeliveryOutcome = {
  readonly number: number;
  readonly nowIso: string;
  readonly endpointState?: string | undefined;
} & (
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly dueMs: number; readonly problem: string }
  | { readonly kind: "dead"; readonly problem: string; readonly disable: boolean }
);

export interface DeadQuery {
  readonly accountId: string;
  readonly beforeNumber: number | undefined;
  readonly limit: number;
}

export interface DeadDelivery {
  readonly number: number;
  readonly endpointId: string | undefined;
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

export interface DeliveryFigures {
  readonly endpoints: number;
  readonly waiting: number;
  readonly dead: number;
}
