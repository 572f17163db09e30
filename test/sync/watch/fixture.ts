import { basename } from "node:path";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { watchSource } from "../../../src/sync/watch/watch.ts";
import { sourceAt } from "../scan/tree.ts";

/** A process that watches the given folders and writes a line for each callback. */
for (const root of process.argv.slice(2)) {
  const report = (text: string): void => void process.stdout.write(`${basename(root)} ${text}\n`);
  await watchSource({
    root,
    rules: openRules(sourceAt(root)),
    onDirty: (path) => report(`dirty ${path ?? "*"}`),
    onError: ({ code, hint = "" }) => report(`error ${code}: ${/fs\.[\w.]+/.exec(hint)?.[0] ?? hint}`),
    onReady: () => report("ready"),
  });
}
