/**
 * Starting again over an unchanged tree of 20,000 files: nothing is read, nothing is sent. The limit to compare with
 * is three times `find -printf` of the tree plus chokidar's own time to ready, both measured in this run.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { kbsync, repositoryRoot, startUp, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { median, peakMb, printTable } from "./report.ts";
import { LARGE_TREE, writeTree } from "./tree.ts";

const RUNS = 5;
const shape = process.argv.includes("--large")
  ? { files: 100_000, folders: 1000, meanBytes: 1000 }
  : LARGE_TREE;

const tree = temporaryFolder("bench-tree");
const state = temporaryFolder("bench-state");
writeTree(tree.path, shape);
const first = await kbsync(["sync", tree.path, "--port", "0", "--state-dir", state.path]);
if (first.code !== 0) throw new Error(`the first sync ended with ${first.code}: ${first.stderr}`);

const find = await timed(
  () => void execFileSync("find", [tree.path, "-printf", "%p %s %T@ %C@ %i\\n"], { maxBuffer: 1e9 }),
);
const chokidarScript = `
  const { watch } = await import(${JSON.stringify(import.meta.resolve("chokidar"))});
  const start = performance.now();
  const watcher = watch(process.argv[1], { ignoreInitial: true, followSymlinks: false });
  watcher.on("ready", () => { console.log(performance.now() - start); process.exit(); });`;
const chokidar = median(
  Array.from({ length: RUNS }, () =>
    Number(
      spawnSync(process.execPath, ["--input-type=module", "-e", chokidarScript, tree.path], {
        encoding: "utf8",
      }).stdout,
    ),
  ),
);
const bare = await timed(
  () =>
    void execFileSync(process.execPath, [
      join(repositoryRoot, "dist", "main.js"),
      "status",
      "--state-dir",
      state.path,
    ]),
);

const starts: number[] = [];
let memory = 0;
for (let run = 0; run < RUNS; run++) {
  const start = performance.now();
  const running = await startUp(["up", tree.path, "--port", "0"], state.path);
  await until("agreement", () => running.output.stdout.includes("in agreement"));
  starts.push(performance.now() - start);
  if (!running.output.stdout.includes("nothing to send"))
    throw new Error(`something was sent: ${running.output.stdout}`);
  memory = Math.max(memory, peakMb(running.child.pid));
  await stop(running);
}
const ours = median(starts);
const limit = 3 * find + chokidar;
printTable(
  ["start over an unchanged tree", "ms", "kbsync / it", ""],
  [
    [
      "kbsync up, whole process",
      ours.toFixed(0),
      "1.00",
      `0 files read, 0 requests; peak ${memory.toFixed(0)} MB`,
    ],
    [
      "3 × find -printf + chokidar ready",
      limit.toFixed(0),
      (ours / limit).toFixed(2),
      `find ${find.toFixed(0)} ms, chokidar ${chokidar.toFixed(0)} ms`,
    ],
    [
      "the same and `kbsync status` (starting the program)",
      (limit + bare).toFixed(0),
      (ours / (limit + bare)).toFixed(2),
      `${bare.toFixed(0)} ms`,
    ],
  ],
);
tree.remove();
state.remove();

async function timed(run: () => void | Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < RUNS; index++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return median(times);
}
