import { KbsyncError } from "../../../../lib/failure.ts";
import { mayBeCommitted } from "../../commit-unknown.ts";
import type { Records } from "../../records.ts";
import type { Resource } from "../../resources.ts";
import type { Database } from "../database/database.ts";
import { isConnectionLoss } from "../database/failures.ts";
import { openGroupWrites } from "../database/group-writes.ts";
import { createAll, newDocument, type NewDocument } from "./creates.ts";

/** Most creates that wait: more than all requests in flight make. */
const WAITING_MAX = 16_384;

/**
 * Returns methods whose creates of one account, of those that wait at the same time, share a transaction: its flush is most of what a
 * small document costs, and the account's feed admits one at a time.
 */
export function groupCreatesOn(
  database: Pick<Database, "run">,
  name: string,
): Pick<Records, "createResource" | "enqueueCreate"> {
  const writes = openGroupWrites<NewDocument, Resource>({
    write: (accountId, take) => database.run("write", accountId, (tx) => createAll(tx, accountId, take())),
    isOfAll: (failure) =>
      mayBeCommitted(failure) || (failure instanceof Error && isConnectionLoss(failure.cause)),
    waitingMax: WAITING_MAX,
    full: () =>
      new KbsyncError("too much work for the database is waiting", {
        code: "store_busy",
        subject: name,
        retryable: true,
      }),
  });
  const create = (document: NewDocument): Promise<Resource> =>
    writes.add(
      document.resource.accountId,
      document,
      document.resource.content.length + (document.job?.body.length ?? 0),
    );
  return {
    createResource: async (resource, chunking, sameTransaction) =>
      create(newDocument(resource, { chunking, request: sameTransaction?.request })),
    enqueueCreate: async (resource, job, sameTransaction) =>
      create(newDocument(resource, { job, request: sameTransaction?.request })),
  };
}
