import { newHexId } from "../../../lib/ids.ts";
import { TIERS } from "../../../wire/constants.ts";
import { accountsOn } from "./accounts/accounts.ts";
import type { Transaction } from "./database/connections.ts";
import { queueOn } from "./queue/queue.ts";

/** The methods of the ports inside a transaction, which `open.ts` runs as the table of methods says. */
export function operationsOn(tx: Transaction) {
  const newId = (): string => newHexId(Date.now());
  return {
    records: {
      ...accountsOn(tx, () => [newId(), ...TIERS.map(newId)]),
    },
    queue: queueOn(tx),
  };
}

/** The methods that this store has so far. */
export type Operations = ReturnType<typeof operationsOn>;
