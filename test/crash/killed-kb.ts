/**
 * The built knowledge-base service in a process of its own, with a fast embedder, for tests that kill it. Arguments: state
 * folder, key.
 * Prints its address when it answers.
 */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { pino } from "pino";
import { hashedEmbedder } from "../fakes/hashed-embedder.ts";

type Services = typeof import("../../src/kb/service.ts");
type Stores = typeof import("../../src/kb/store/sqlite/open.ts");
type Keys = typeof import("../../src/kb/keys/keys.ts");

const [stateDir = "", key = ""] = process.argv.slice(2);
// The built service: its start, of which there are many, takes a third of what the sources take.
const built = process.env["KBSYNC_TEST_DIST"] ?? fileURLToPath(new URL("../../dist", import.meta.url));
const load = (module: string): Promise<unknown> => import(pathToFileURL(join(built, module)).href);
const [{ openService }, { openSqliteStore }, { ALL_SCOPES }] = (await Promise.all([
  load("kb/service.js"),
  load("kb/store/sqlite/open.js"),
  load("kb/keys/keys.js"),
  // What the build makes of the sources has their types.
])) as [Services, Stores, Keys];
const service = await openService({
  stateDir,
  store: await openSqliteStore({ path: join(stateDir, "kb.sqlite") }),
  port: 0,
  openEmbedder: () => Promise.resolve(hashedEmbedder()),
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
const { url } = await service.start();
process.stdout.write(`${url}\n`);
