/**
 * From the moment a file is written to the moment a search finds it, over HTTP as a user would see it, with
 * everything running in one process on 1,000 other files. The settle time is part of it and stands beside it.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SYNC_CONSTANTS } from "../src/config/schema/sync.ts";
import { search, startUp, statusOf, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { printTable, quantile } from "./report.ts";
import { writeTree } from "./tree.ts";

const SAVES = 200;
const { settleMs } = SYNC_CONSTANTS;

const folder = temporaryFolder("bench-latency");
const state = temporaryFolder("bench-state");
writeTree(folder.path, { files: 1000, folders: 20, meanBytes: 4650 });
const running = await startUp(["up", folder.path, "--tier", "fastest", "--port", "0"], state.path);
await until("agreement", () => running.output.stdout.includes(" searchable, "));
const { collectionId, ownerId } = await statusOf(folder.path, state.path);

const saved: number[] = [];
for (let index = 0; index < SAVES; index++) {
  // Half of the saves make a new file, half change one: both are what people do.
  const path = join(folder.path, index % 2 === 0 ? `saved-${index}.md` : `saved-${index - 1}.md`);
  const word = `unmistakable${index}x`;
  writeFileSync(path, `# Saved ${index}\n\nA sentence with ${word} in it.\n`);
  const start = performance.now();
  for (;;) {
    const { results } = await search(running, {
      query: word,
      collection_id: collectionId ?? "",
      owner_id: ownerId,
      top_k: 1,
    });
    if (results[0]?.payload.content.includes(word) === true) break;
    if (performance.now() - start > 10_000) throw new Error(`save ${index} was not found within 10 s`);
    await sleep(1);
  }
  saved.push(performance.now() - start);
}
const row = (name: string, value: number): string[] => [
  name,
  `${value.toFixed(0)} ms`,
  `${(value - settleMs).toFixed(0)} ms`,
  (value / settleMs).toFixed(2),
];
printTable(
  ["save to searchable", "time", `beyond the settle time of ${settleMs} ms`, "ratio to it"],
  [row("p50", quantile(saved, 0.5)), row("p99", quantile(saved, 0.99)), row("slowest", Math.max(...saved))],
);
await stop(running);
folder.remove();
state.remove();
