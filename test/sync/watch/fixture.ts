import { basename } from "node:path";
import { openRules } from "../../../src/sync/rules/rules.ts";
import { watchSource } from "../../../src/sync/watch/watch.ts";
import { sourceAt } from "../scan/tree.ts";

/** A process that watches the given folders and writes a line for each callback. */
for (const root of process.argv.slice(2)) {
  const tell = (text: string): void => void process.stdout.write(`${basename(root)} ${text}\n`);
  await watchSource({
    root,
    rules: openRules(sourceAt(root)),
    onDirty: (path) => tell(`dirty ${path ?? "*"}`),
    onError: ({ code, hint = "" }) => tell(`error ${code}: ${/fs\.[\w.]+/.exec(hint)?.[0] ?? hint}`),
    onReady: () => tell("ready"),
  });
}
