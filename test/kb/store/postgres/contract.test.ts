import { describe } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { recordsContract } from "../records-contract.ts";
import { isSkipped, newDatabase } from "./databases.ts";

describe.skipIf(isSkipped())("PostgreSQL", () => {
  // The tests scrub no store.
  recordsContract("PostgreSQL", async () => (await openPostgresStore(await newDatabase())) as Store);
});
