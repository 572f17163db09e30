/** A service in a process of its own, one of several on a database. Arguments: state folder, address of the database, key. Prints its address. */
import { pino } from "pino";
import { ALL_SCOPES } from "../../../../../src/kb/keys/keys.ts";
import { openService } from "../../../../../src/kb/service.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";

const [stateDir = "", database = "", key = ""] = process.argv.slice(2);
const service = await openService({
  stateDir,
  store: await openPostgresStore(database),
  sharesStore: true,
  port: 0,
  webhookAllow: ["127.0.0.1"],
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
