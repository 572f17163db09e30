import { describe } from "vitest";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { queueLaw } from "./queue-law.ts";

describe("the queue of documents in SQLite", () => {
  queueLaw(async () => [await openSqliteStore()], 80);
});
