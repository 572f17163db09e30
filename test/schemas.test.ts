import { hash } from "node:crypto";
import { expect, it } from "vitest";
import { SCHEMA as POSTGRES } from "../src/kb/store/postgres/database/schema.ts";
import { SCHEMA as STORE } from "../src/kb/store/sqlite/database/schema.ts";
import { SCHEMA as LEDGER } from "../src/sync/ledger/database/schema.ts";

const SCRIPTS = {
  ledger: LEDGER,
  store: STORE,
  postgres: { baseline: POSTGRES.baseline, scripts: POSTGRES.scripts.map(({ sql }) => sql) },
};

/** Hashes what a database is made of: scripts without comments and spaces. */
const digestOf = (script: string): string =>
  hash("sha256", script.replaceAll(/--.*/g, "").replaceAll(/\s+/g, "")).slice(0, 12);

// A script that changes under the same version leaves databases without the change, which pass for new ones. Before the first
// release: raise the baseline. After it: leave the script, and add one.
it.each([
  ["ledger", 19, ["1b4be9abbab1", "1a2c3d533c8b", "026ef988acb1"]],
  ["store", 42, ["ae6a898d4dfb"]],
  ["postgres", 10, ["0f8e93b17e9e"]],
] as const)("the scripts of the %s have not changed since version %s", (name, baseline, digests) => {
  const schema = SCRIPTS[name];
  expect([schema.baseline, schema.scripts.map(digestOf)]).toEqual([baseline, digests]);
});
