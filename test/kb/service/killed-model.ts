/**
 * A service of its own process whose embedding model is another one than its vectors are of, for tests that kill it.
 * Argument: state folder. Prints a line whenever the new model is asked for documents' vectors.
 */
import { join } from "node:path";
import { pino } from "pino";
import { openService } from "../../../src/kb/service.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const [stateDir = ""] = process.argv.slice(2);
const real = hashedEmbedder("two/64");
const close = async (): Promise<void> => undefined;
const service = await openService({
  stateDir,
  store: await openSqliteStore({ path: join(stateDir, "kb.sqlite") }),
  port: 0,
  openEmbedder: async () => ({
    ...real,
    close,
    embed: async (texts, signal) => {
      process.stdout.write(`${texts.length}\n`);
      return real.embed(texts, signal);
    },
  }),
  openEarlierEmbedder: async () => ({ ...hashedEmbedder("one/64"), close }),
  log: pino({ level: "silent" }),
  version: "0.0.0-test",
});
await service.start();
