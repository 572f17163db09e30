/**
 * First sync of 20,000 Markdown files (93 MB, 400 folders) into `fastest` over loopback, service and daemon in one
 * process, from the start of the process to the line that says everything is in agreement. In the same run: what the
 * bytes alone cost (read, hash, write, fsync), and the peers where they are installed.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { startUp, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { runQmd, runRclone, runSyncthing } from "./peers.ts";
import { median, peakMb, printTable } from "./report.ts";
import { LARGE_TREE, writeTree } from "./tree.ts";

const RUNS = 3;

const tree = temporaryFolder("bench-tree");
const bytes = writeTree(tree.path, LARGE_TREE);
process.stdout.write(
  `${LARGE_TREE.files} files, ${(bytes / 1e6).toFixed(0)} MB, ${LARGE_TREE.folders} folders\n`,
);

const seconds: number[] = [];
let memory = 0;
for (let run = 0; run < RUNS; run++) {
  const state = temporaryFolder("bench-state");
  const start = performance.now();
  const running = await startUp(["up", tree.path, "--tier", "fastest", "--port", "0"], state.path);
  await until("agreement", () => running.output.stdout.includes(" searchable, "));
  seconds.push((performance.now() - start) / 1000);
  memory = Math.max(memory, peakMb(running.child.pid));
  await stop(running);
  state.remove();
}
const ours = median(seconds);
const floor = bytesAlone(tree.path);

const rows = [
  [
    "kbsync, both halves",
    `${ours.toFixed(1)} s`,
    "1.00",
    `searchable; peak ${memory.toFixed(0)} MB; ${(bytes / 1e6 / ours).toFixed(1)} MB/s`,
  ],
  [
    "read, SHA-256, write, fsync",
    `${floor.toFixed(1)} s`,
    (ours / floor).toFixed(2),
    "the bytes alone, one thread",
  ],
];
const peers = [
  await runRclone(tree.path),
  await runSyncthing(tree.path, LARGE_TREE.files),
  ...(process.argv.includes("--no-qmd") ? [] : [runQmd(tree.path)]),
];
for (const { name, seconds: theirs, note } of peers) {
  rows.push([
    name,
    theirs === undefined ? "-" : `${theirs.toFixed(1)} s`,
    theirs === undefined ? "-" : (ours / theirs).toFixed(2),
    note,
  ]);
}
printTable(["first sync", "time", "kbsync / it", ""], rows);
tree.remove();

/** Seconds for reading every file, hashing it and writing its bytes to one file, with an fsync at the end. */
function bytesAlone(root: string): number {
  const copy = temporaryFolder("bench-copy");
  const start = performance.now();
  const out = openSync(join(copy.path, "all"), "w");
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    const path = join(root, name);
    if (!statSync(path).isFile()) continue;
    const data = readFileSync(path);
    createHash("sha256").update(data).digest();
    writeSync(out, data);
  }
  fsyncSync(out);
  closeSync(out);
  const elapsed = (performance.now() - start) / 1000;
  copy.remove();
  return elapsed;
}
