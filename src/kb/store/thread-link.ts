export interface ThreadKey {
  readonly accountId: string;
  readonly agentId: string;
  readonly threadId: string;
}

/** A link of an uploaded file to a thread. */
export interface ThreadLink extends ThreadKey {
  /** The agent is a row of the store, which can be removed with its threads: it must still exist. */
  readonly isStoredAgent: boolean;
  /** Its `createdAt`: an agent created again under the same id is another agent. */
  readonly agentCreatedAt?: string | undefined;
  readonly nowIso: string;
}
