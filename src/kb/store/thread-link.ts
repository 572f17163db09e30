export interface ThreadKey {
  readonly accountId: string;
  readonly agentId: string;
  readonly threadId: string;
}

/** A link of an uploaded file to a thread. */
export interface ThreadLink extends ThreadKey {
  readonly nowIso: string;
}
