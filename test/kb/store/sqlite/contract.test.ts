import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { storeContract } from "../store-contract.ts";

storeContract("SQLite", () => openSqliteStore());
