import { join } from "node:path";
import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../lib/worker-calls.ts";
import { openRules, type Rules } from "../rules/rules.ts";
import { packBatch, type ReadBatch, type ReaderMethods } from "./batch.ts";
import { readPlain } from "./read.ts";

if (parentPort === null) throw new Error("this module is a worker: start it with openThreadReader");

/** Rules by the source's configuration. A daemon has few, and the thread lives only while there is work. */
const known = new Map<string, Rules>();

function rulesOf(source: ReadBatch["source"]): Rules {
  const name = JSON.stringify(source);
  const rules = known.get(name) ?? openRules(source);
  known.set(name, rules);
  return rules;
}

const methods: ReaderMethods = {
  greet: () => undefined,
  read: async ({ source, paths }) => {
    const rules = rulesOf(source);
    const root = source.absolutePath;
    const outcomes = await Promise.all(paths.map(async (path) => readPlain(join(root, path), path, rules)));
    return packBatch(outcomes);
  },
};

answerCalls(parentPort, methods);
