import { describe } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { indexContract } from "../index-contract.ts";
import { isSkipped, newDatabase } from "./databases.ts";

describe.skipIf(isSkipped())("PostgreSQL", () => {
  indexContract("PostgreSQL", async () => openPostgresStore(await newDatabase()));
});
