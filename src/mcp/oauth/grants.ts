/** A grant of access for one client: a key of the service that was derived from a person's. */
export interface Grant {
  readonly key: string;
  readonly keyExpiresAt: string;
  /** For the next key, once. */
  readonly refreshToken: string;
}

/** The service's operations on grants. All throw the service's refusals. */
export interface Grants {
  /** Derives a key from a person's, for a client of that name. */
  create(this: void, personKey: string, name: string, signal: AbortSignal): Promise<Grant>;
  refresh(this: void, refreshToken: string, signal: AbortSignal): Promise<Grant>;
  end(this: void, key: string, signal: AbortSignal): Promise<void>;
}
