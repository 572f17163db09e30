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
 * Returns methods whose creates of one owner in a collection, of those that wait at the same time, share a transaction: its flush is most
 * of what a small document costs. Those of another owner do not wait for it: its documents may be large, or its scope locked.
 */
export function groupCreatesOn(
  database: Pick<Database, "run">,
  name: string,
): Pick<Records, "createResource" | "enqueueCreate"> {
  const writes = openGroupWrites<NewDocument, Resource>({
    write: (line, take) => {
      const accountId = line.slice(0, line.indexOf("\n"));
      return database.run("write", accountId, (tx) => createAll(tx, accountId, take()));
    },
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
  const create = (document: NewDocument): Promise<Resource> => {
    const { accountId, tier, ownerId, content } = document.resource;
    const chars = content.length + (document.job?.body.length ?? 0);
    return writes.add(`${accountId}\n${tier}\n${ownerId}`, document, chars);
  };
  return {
    createResource: async (resource, chunking, sameTransaction) =>
      create(newDocument(resource, { chunking, request: sameTransaction?.request })),
    enqueueCreate: async (resource, job, sameTransaction) =>
      create(newDocument(resource, { job, request: sameTransaction?.request })),
  };
}
