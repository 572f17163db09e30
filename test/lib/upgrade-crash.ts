import Database from "better-sqlite3";
import { upgrade } from "../../src/lib/upgrade.ts";
import { NOTES } from "./notes-schema.ts";

// The process that upgrade.test.ts starts and kills in the middle of the second step, when the third has started.
const [file = ""] = process.argv.slice(2);
const db = new Database(file);
db.pragma("journal_mode = WAL");
db.function("die", () => process.kill(process.pid, "SIGKILL"));
const scripts = [...NOTES, "UPDATE note SET text = die() || text"];
upgrade(db, { file, kind: "store", schema: { baseline: 1, scripts } });
