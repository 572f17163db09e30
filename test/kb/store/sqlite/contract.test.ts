import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { indexContract } from "../index-contract.ts";
import { recordsContract } from "../records-contract.ts";

recordsContract("SQLite", () => openSqliteStore());
indexContract("SQLite", () => openSqliteStore());
