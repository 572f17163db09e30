import { describe } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { recordsContract } from "../records-contract.ts";
import { isSkipped, newDatabase } from "./databases.ts";

describe.skipIf(isSkipped())("PostgreSQL", () => {
  recordsContract("PostgreSQL", async () => openPostgresStore(await newDatabase()));
});
