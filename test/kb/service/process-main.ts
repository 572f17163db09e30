/** The program of `startProcess`. Argument: `ProcessOptions` as JSON. Prints the address of the service when it answers. */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { pino } from "pino";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import type { ProcessOptions } from "./process.ts";

/** A stop waits so long for what is under way. */
const STOP_MS = 200;
const root = fileURLToPath(new URL("../../..", import.meta.url));
const options = JSON.parse(process.argv[2] ?? "") as ProcessOptions; // `launchProcess` writes it
const { stateDir, key, database, laterScripts = [], languageModel, isBuilt = false } = options;

/** Loads a module of the service, from the sources or from what the build made of them. */
async function load(module: string): Promise<unknown> {
  const built = process.env["KBSYNC_TEST_DIST"] ?? join(root, "dist");
  const path = isBuilt ? join(built, `${module}.js`) : join(root, "src", `${module}.ts`);
  return import(pathToFileURL(path).href);
}

async function openStore() {
  if (database === undefined) {
    const sqlite = (await load(
      "kb/store/sqlite/open",
    )) as typeof import("../../../src/kb/store/sqlite/open.ts");
    return sqlite.openSqliteStore({ path: join(stateDir, "kb.sqlite") });
  }
  if (laterScripts.length > 0) {
    const { SCHEMA } = (await load(
      "kb/store/postgres/database/schema",
    )) as typeof import("../../../src/kb/store/postgres/database/schema.ts");
    Object.assign(SCHEMA, { scripts: [...SCHEMA.scripts, ...laterScripts] });
  }
  const postgres = (await load(
    "kb/store/postgres/open",
  )) as typeof import("../../../src/kb/store/postgres/open.ts");
  return postgres.openPostgresStore(database);
}

const [{ openService }, { ALL_SCOPES }, store] = (await Promise.all([
  load("kb/service"),
  load("kb/keys/keys"),
  openStore(),
])) as [
  typeof import("../../../src/kb/service.ts"),
  typeof import("../../../src/kb/keys/keys.ts"),
  Awaited<ReturnType<typeof openStore>>,
];
const service = await openService({
  stateDir,
  store,
  sharesStore: database !== undefined,
  port: 0,
  webhookAllow: ["127.0.0.1"],
  fetchAllow: ["127.0.0.1"],
  ...(languageModel !== undefined && { languageModel }),
  ...(isBuilt && { openEmbedder: () => Promise.resolve(hashedEmbedder()) }),
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
