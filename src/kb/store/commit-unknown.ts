/** The connection was lost while COMMIT was in flight: only the database knows whether it was carried out. */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

/** Reports whether a write that failed with this error may have been committed nevertheless. */
export function mayBeCommitted(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof CommitUnknown;
}
