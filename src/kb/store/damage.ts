import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { Store } from "./store.ts";

/** What a person can do about a damaged store, as answers, logs and a start that fails say it. */
export const DAMAGE_HINT =
  "`kbsync doctor` tells what is damaged, `kbsync restore` puts a backup in its place; the store was left as it is.";

/** Whether a failure says that the store file is damaged: our words for it, or SQLite's from where nothing put it in ours. */
export function saysDamaged(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return code === "store_damaged" || code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT");
}

/** Any operation of a store, whatever it takes. */
type Operation = (...given: never[]) => Promise<unknown>;

/**
 * The same store, which tells of the first of its operations that found it damaged, with that failure: a file that is
 * damaged stays so until a person acts, and each operation that meets it would tell the same.
 */
export function noticeDamage(store: Store, onDamaged: (failure: KbsyncError) => void): Store {
  let isTold = false;
  const notice = (error: unknown): void => {
    if (isTold || !saysDamaged(error)) return;
    isTold = true;
    onDamaged(
      error instanceof KbsyncError
        ? error
        : new KbsyncError("the store file is damaged", { code: "store_damaged", cause: error }),
    );
  };
  /** The same operations, each by its own name. */
  const noticed = <T extends Record<keyof T, Operation>>(operations: T): T =>
    Object.fromEntries(
      Object.entries<Operation>(operations).map(([name, operation]) => [
        name,
        async (...given: never[]): Promise<unknown> => {
          try {
            return await operation(...given);
          } catch (error) {
            notice(error);
            throw error;
          }
        },
      ]),
    ) as T;
  const { problem, queue, ...operations } = store;
  return { ...noticed(operations), queue: noticed(queue), problem };
}
