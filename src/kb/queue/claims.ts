/**
 * Names that one process of a store holds at a time. A claim ends when its time is over, so a crash leaves nothing behind; and a process
 * that was stopped for longer no longer holds what it claimed. What must never happen twice is therefore also excluded by the
 * transaction that writes it. Claims need not survive a crash of the database. Times come from the database's clock.
 */
export interface Claims {
  /** Claims names, or renews claims of this holder. Returns the names that it holds now: others have the rest. */
  take(names: readonly string[], holder: string, forMs: number): Promise<readonly string[]>;
  /** Ends claims of this holder. */
  release(names: readonly string[], holder: string): Promise<void>;
  /** Removes up to `limit` claims that have ended by time. Returns how many. */
  sweep(limit: number): Promise<number>;
}
