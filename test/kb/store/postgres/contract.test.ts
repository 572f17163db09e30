import { describe } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { batchContract } from "../contract-batches.ts";
import { changesContract } from "../contract-changes.ts";
import { chatContract } from "../contract-chat.ts";
import { keysContract } from "../contract-keys.ts";
import { retentionContract } from "../contract-retention.ts";
import { usageContract } from "../contract-usage.ts";
import { openFixture } from "../store-fixture.ts";
import { isSkipped, newDatabase } from "./databases.ts";

// The suite of resources comes with the index, which it searches; these suites write resources too.
describe.skipIf(isSkipped())("PostgreSQL: the records contract", () => {
  const fixture = openFixture(async () => {
    const store = await openPostgresStore(await newDatabase());
    return store as unknown as Store; // the tests of these suites use records and queue alone
  });
  retentionContract(fixture);
  keysContract(fixture);
  chatContract(fixture);
  changesContract(fixture);
  usageContract(fixture);
  batchContract(fixture);
});
