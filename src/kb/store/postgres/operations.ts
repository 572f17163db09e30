import { newHexId } from "../../../lib/ids.ts";
import { TIERS } from "../../../wire/constants.ts";
import type { Records } from "../records.ts";
import type { Ports } from "../store.ts";
import { accountsOn } from "./accounts/accounts.ts";
import { keysOn, sessionsOn } from "./accounts/keys.ts";
import { linkImage, threadsOn } from "./chat/threads.ts";
import type { Transaction } from "./database/connections.ts";
import { queueOn } from "./queue/queue.ts";
import { webhooksOn } from "./queue/webhooks.ts";
import { erasuresOn } from "./resources/erasures.ts";
import { filesOn, insertFile } from "./resources/files.ts";
import { resourceReadsOn } from "./resources/reads.ts";
import { noteFile, requestNotesOn } from "./resources/request-notes.ts";
import { resourceWritesOn } from "./resources/writes.ts";
import type { IndexCaches } from "./search/caches.ts";
import { indexOn } from "./search/index-methods.ts";

/** The methods of the ports inside a transaction, which `open.ts` runs as the table of methods says. */
export function operationsOn(tx: Transaction, caches: IndexCaches): Ports {
  return { records: recordsOn(tx), queue: queueOn(tx), index: indexOn(tx, caches) };
}

function recordsOn(tx: Transaction): Records {
  const newId = (): string => newHexId(Date.now());
  return {
    ...accountsOn(tx, () => [newId(), ...TIERS.map(newId)]),
    ...keysOn(tx),
    ...sessionsOn(tx),
    ...resourceReadsOn(tx),
    ...resourceWritesOn(tx),
    ...requestNotesOn(tx),
    ...filesOn(tx),
    ...erasuresOn(tx),
    ...webhooksOn(tx),
    ...threadsOn(tx),
    addFile: async (file, sameTransaction) => {
      await insertFile(tx, file);
      if (sameTransaction?.thread !== undefined) await linkImage(tx, sameTransaction.thread, file.token);
      if (sameTransaction?.request !== undefined) await noteFile(tx, file, sameTransaction.request);
    },
  };
}
