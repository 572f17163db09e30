/**
 * A service of its own process whose embedding model is another one than its vectors are of, for tests that kill it.
 * Arguments: state folder, and how many texts the new model embeds: asked for more, it prints a line and hangs.
 */
import { join } from "node:path";
import { pino } from "pino";
import { openService } from "../../../src/kb/service.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const [stateDir = "", textsMax = ""] = process.argv.slice(2);
let asked = 0;
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
      asked += texts.length;
      if (asked <= Number(textsMax)) return real.embed(texts, signal);
      // Hanging: a late kill finds no more done than an early one.
      process.stdout.write("under way\n");
      return Promise.withResolvers<never>().promise;
    },
  }),
  openEarlierEmbedder: async () => ({ ...hashedEmbedder("one/64"), close }),
  log: pino({ level: "silent" }),
  version: "0.0.0-test",
});
await service.start();
