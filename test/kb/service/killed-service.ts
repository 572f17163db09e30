/** A service of its own process for tests that kill or stop it. Arguments: state folder, key, the address of a language model if there is one. Prints its address. */
import { join } from "node:path";
import { pino } from "pino";
import { ALL_SCOPES } from "../../../src/kb/keys/keys.ts";
import { openService } from "../../../src/kb/service.ts";
import { ENDPOINT_KEY } from "../../fakes/model-endpoint.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";

/** A stop waits so long for what is under way. */
const STOP_MS = 200;
const [stateDir = "", key = "", modelUrl] = process.argv.slice(2);
const service = await openService({
  stateDir,
  store: await openSqliteStore({ path: join(stateDir, "kb.sqlite") }),
  port: 0,
  webhookAllow: ["127.0.0.1"],
  fetchAllow: ["127.0.0.1"],
  ...(modelUrl !== undefined && {
    languageModel: { baseUrl: modelUrl, model: "seeing", apiKey: ENDPOINT_KEY },
  }),
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
