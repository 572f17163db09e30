import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { Store } from "./store.ts";

/** What a person can do about a damaged store; part of answers, logs and the error of a failed start. */
export const DAMAGE_HINT =
  "`kbsync doctor` reports what is damaged, `kbsync restore` replaces the store by a backup; the store was left as it is.";

/** Reports whether an error means that the store file is damaged: a KbsyncError, or an error of SQLite itself. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return code === "store_damaged" || code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT");
}

/** Any operation of a store, whatever its arguments. */
type Operation = (...given: never[]) => Promise<unknown>;

/**
 * Returns the same store, which calls `listener` with the first failure that means damage, and only with that one: a
 * damaged file stays damaged until a person acts, so every further report would say the same.
 */
export function onDamage(store: Store, listener: (failure: KbsyncError) => void): Store {
  let isReported = false;
  const report = (error: unknown): void => {
    if (isReported || !isDamage(error)) return;
    isReported = true;
    listener(
      error instanceof KbsyncError
        ? error
        : new KbsyncError("the store file is damaged", { code: "store_damaged", cause: error }),
    );
  };
  const reporting = <T extends Record<keyof T, Operation>>(operations: T): T =>
    Object.fromEntries(
      Object.entries<Operation>(operations).map(([name, operation]) => [
        name,
        async (...given: never[]): Promise<unknown> => {
          try {
            return await operation(...given);
          } catch (error) {
            report(error);
            throw error;
          }
        },
      ]),
    ) as T; // the same names and signatures
  const { problem, queue, ...operations } = store;
  return { ...reporting(operations), queue: reporting(queue), problem };
}
