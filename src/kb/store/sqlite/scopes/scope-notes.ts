/** Scopes whose changes are counted at once. */
const SCOPES_NOTED = 10_000;

/** Returns a function that counts changes of scopes, and adds to `due` those that have `changesMax` of them. */
export function openScopeNotes(due: Set<number>, changesMax: number): (scope: number, count: number) => void {
  const changes = new Map<number, number>();
  return (scope, count) => {
    const noted = (changes.get(scope) ?? 0) + count;
    if (noted < changesMax) changes.set(scope, noted);
    else {
      changes.delete(scope);
      due.add(scope);
    }
    if (changes.size <= SCOPES_NOTED) return;
    for (const each of changes.keys()) due.add(each);
    changes.clear();
  };
}
