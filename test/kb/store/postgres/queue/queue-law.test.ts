import { describe } from "vitest";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { queueLaw } from "../../../jobs/queue-law.ts";
import { isSkipped, newDatabase } from "../databases.ts";

describe.skipIf(isSkipped())("the queue of documents in PostgreSQL", () => {
  queueLaw(async () => {
    const url = await newDatabase();
    return [await openPostgresStore(url), await openPostgresStore(url)];
  }, 30);
});
