/** The program of `startProcess`. Argument: `ProcessOptions` as JSON. Prints the address of the service when it answers. */
import { join } from "node:path";
import { pino } from "pino";
import { ALL_SCOPES } from "../../../src/kb/keys/keys.ts";
import { openService } from "../../../src/kb/service.ts";
import { SCHEMA } from "../../../src/kb/store/postgres/database/schema.ts";
import { openPostgresStore } from "../../../src/kb/store/postgres/open.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import type { ProcessOptions } from "./process.ts";

/** A stop waits so long for what is under way. */
const STOP_MS = 200;
const options = JSON.parse(process.argv[2] ?? "") as ProcessOptions; // `launchProcess` writes it
const { stateDir, key, database, laterScripts = [], languageModel, isHashed = false } = options;

async function openStore() {
  if (database === undefined) return openSqliteStore({ path: join(stateDir, "kb.sqlite") });
  if (laterScripts.length > 0) Object.assign(SCHEMA, { scripts: [...SCHEMA.scripts, ...laterScripts] });
  return openPostgresStore(database);
}

const store = await openStore();
const service = await openService({
  stateDir,
  store,
  sharesStore: database !== undefined,
  port: 0,
  webhookAllow: ["127.0.0.1"],
  fetchAllow: ["127.0.0.1"],
  ...(languageModel !== undefined && {
    languageModel: { ...languageModel, apiKey: () => languageModel.apiKey },
  }),
  ...(isHashed && { openEmbedder: () => Promise.resolve(hashedEmbedder()) }),
  log: pino({ level: "silent" }),
  version: "0.0.0-test",
});
await service.acceptKey(key, {
  account: "local",
  name: "test",
  scopes: ALL_SCOPES,
  createdAt: new Date().toISOString(),
  expiresAt: null,
});
process.once("SIGTERM", () => void service.close(STOP_MS));
const { url } = await service.start();
process.stdout.write(`${url}\n`);
