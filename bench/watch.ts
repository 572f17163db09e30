/**
 * How the daemon sees the disk: a scan beside `find -printf`, and the watcher beside chokidar alone as it comes: time
 * to ready, memory, how long the main thread stands still meanwhile, latency of a hint, and what is missed of a burst
 * and of folders that are removed and made again. Run: `node bench/watch.ts [files folders]`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { watch as watchWithChokidar } from "chokidar";
import { readDocument } from "../src/sync/scan/read/read.ts";
import type { WatchedSource } from "../src/sync/scan/rules/rules.ts";
import { openRules } from "../src/sync/scan/rules/rules.ts";
import { scanSource } from "../src/sync/scan/scan.ts";
import { watchSource } from "../src/sync/watch/watch.ts";
import { median, peakMb, printTable, quantile, residentMb } from "./report.ts";
import { writeTree } from "./tree.ts";

const WRITES = 300;
const BURST = 20_000;
const RETURNING = 200;
const ROUNDS = 5;

/** What one watcher did, as its process prints it. */
interface Figures {
  readonly readyMs: number;
  readonly lagMs: number;
  readonly startMb: number;
  readonly peakMb: number;
  readonly restMb: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly burstMissed: number;
  readonly folderLost: number;
  readonly peakAfterMb: number;
}

const [first = "", second = "", third = ""] = process.argv.slice(2);
if (first === "child") {
  const figures = await measureWatcher(second, third);
  process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit());
} else if (first === "") {
  for (const [files, folders] of [
    [20_000, 400],
    [100_000, 1000],
  ] as const) {
    await measure(files, folders);
  }
} else await measure(Number(first), Number(second));

async function measure(files: number, folders: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "kbsync-watch-"));
  try {
    writeTree(root, { files, folders, meanBytes: 1000 });
    process.stdout.write(`\n${files} files, ${folders} folders\n\n`);
    await printScan(root);
    const rows = ["chokidar alone", "watchSource"].map((name) => [name, runChild(name, root)] as const);
    process.stdout.write("\n");
    printTable(
      [
        "",
        "ready ms",
        "loop lag ms",
        "MB before",
        "peak",
        "at rest",
        "p50 ms",
        "p99 ms",
        `missed of ${BURST}`,
        `lost of ${RETURNING} folders`,
        "peak after all",
      ],
      rows.map(([name, figures]) => cells(name, figures)),
    );
  } finally {
    rmSync(root, { recursive: true });
  }
}

function cells(name: string, figures: Figures): string[] {
  const { readyMs, lagMs, startMb, restMb, p50Ms, p99Ms, burstMissed, folderLost, peakAfterMb } = figures;
  const whole = [readyMs, lagMs, startMb, figures.peakMb, restMb].map((value) => value.toFixed(0));
  return [
    name,
    ...whole,
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
    String(burstMissed),
    String(folderLost),
    peakAfterMb.toFixed(0),
  ];
}

async function printScan(root: string): Promise<void> {
  const rules = openRules(sourceAt(root));
  const finds: number[] = [];
  const scans: number[] = [];
  const reads: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    let start = performance.now();
    spawnSync("find", [root, "-printf", String.raw`%p %s %T@ %i\n`], { maxBuffer: 2 ** 30 });
    finds.push(performance.now() - start);
    start = performance.now();
    const { entries } = await scanSource(root, rules);
    scans.push(performance.now() - start);
    start = performance.now();
    for (const entry of entries) await readDocument(join(root, entry.path), entry, rules);
    reads.push(((performance.now() - start) / entries.length) * 1000);
  }
  printTable(
    ["find -printf ms", "first scan ms", "scan ms", "of find", "readDocument µs a file"],
    [
      [
        median(finds).toFixed(0),
        (scans[0] ?? Number.NaN).toFixed(0),
        median(scans).toFixed(0),
        (median(scans) / median(finds)).toFixed(1),
        median(reads).toFixed(1),
      ],
    ],
  );
}

function runChild(name: string, root: string): Figures {
  const { stdout } = spawnSync(process.execPath, [import.meta.filename, "child", name, root], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(stdout) as Figures; // printed by our own child
}

async function measureWatcher(name: string, root: string): Promise<Figures> {
  const seen = new Set<string>();
  let all = false;
  const startMb = residentMb(process.pid);
  const lag = monitorEventLoopDelay({ resolution: 2 });
  lag.enable();
  const start = performance.now();
  await new Promise<void>((resolve) => {
    if (name === "watchSource") {
      void watchSource({
        root,
        rules: openRules(sourceAt(root)),
        onDirty: (path) => {
          if (path === undefined) all = true;
          else seen.add(path);
        },
        onError: (error) => process.stderr.write(`${error.message}\n`),
        onReady: resolve,
      });
    } else {
      const watcher = watchWithChokidar(root, { ignoreInitial: true, followSymlinks: false });
      watcher.on("ready", resolve).on("all", (_event, path) => seen.add(path.slice(root.length + 1)));
    }
  });
  const readyMs = performance.now() - start;
  const lagMs = lag.max / 1e6;
  lag.disable();
  const peak = peakMb(process.pid);
  await sleep(3000);
  const restMb = residentMb(process.pid);

  const latencies = await writeOneByOne(root, seen);
  seen.clear();
  const burstMissed = await missedOfBurst(root, seen, () => all);
  await sleep(6000); // as long as a renewed watch may take to be renewed again
  const folderLost = await lostFolders(root, seen);
  return {
    readyMs,
    lagMs,
    startMb,
    peakMb: peak,
    restMb,
    p50Ms: median(latencies),
    p99Ms: quantile(latencies, 0.99),
    burstMissed,
    folderLost,
    peakAfterMb: peakMb(process.pid),
  };
}

async function writeOneByOne(root: string, seen: Set<string>): Promise<number[]> {
  const parts = readdirSync(root);
  const latencies: number[] = [];
  for (let write = 0; write < WRITES; write++) {
    const folder = join(parts[write % parts.length] ?? "", "chapter-0");
    const name = readdirSync(join(root, folder))[Math.floor(write / parts.length)] ?? "new.md";
    const path = join(folder, name);
    seen.delete(path);
    const start = performance.now();
    appendFileSync(join(root, path), "more\n");
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen.has(path)) break;
      if (performance.now() - start > 5000) break;
    }
    latencies.push(performance.now() - start);
    await sleep(2);
  }
  return latencies;
}

/** Creates of another process, so that watching and creating go on at once. */
async function missedOfBurst(root: string, seen: Set<string>, all: () => boolean): Promise<number> {
  const folders = readdirSync(root).map((part) => join(part, "chapter-0"));
  const paths = Array.from({ length: BURST }, (_, n) =>
    join(folders[n % folders.length] ?? "", `burst-${n}.md`),
  );
  const script = `const fs = require("node:fs"); for (const path of JSON.parse(fs.readFileSync(0, "utf8"))) fs.writeFileSync(path, "x");`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "inherit", "inherit"] });
  child.stdin.end(JSON.stringify(paths.map((path) => join(root, path))));
  await once(child, "exit");
  let missed = BURST;
  for (let turn = 0; turn < 100 && missed > 0; turn++) {
    await sleep(100);
    missed = all() ? 0 : paths.filter((path) => !seen.has(path)).length;
  }
  for (const path of paths) rmSync(join(root, path));
  return missed;
}

/** Folders that were removed and made again ten times in quick order, and then gave no event. */
async function lostFolders(root: string, seen: Set<string>): Promise<number> {
  const folders = Array.from({ length: RETURNING }, (_, n) => join(root, "returning", `f${n}`));
  for (const folder of folders) mkdirSync(join(folder, "inner"), { recursive: true });
  await sleep(1000);
  for (const folder of folders) {
    for (let turn = 0; turn < 10; turn++) {
      rmSync(folder, { recursive: true });
      mkdirSync(join(folder, "inner"), { recursive: true });
      await sleep(turn % 3);
    }
  }
  await sleep(12_000);
  seen.clear();
  for (const folder of folders) writeFileSync(join(folder, "inner", "x.md"), "x");
  await sleep(2000);
  rmSync(join(root, "returning"), { recursive: true });
  return folders.filter((folder) => !seen.has(join(folder, "inner", "x.md").slice(root.length + 1))).length;
}

function sourceAt(root: string): WatchedSource {
  if (!existsSync(root)) throw new Error(`${root} is missing`);
  return {
    path: root,
    absolutePath: root,
    ownerId: "bench",
    collection: "fastest",
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    include: [],
    exclude: [],
    deletes: "mirror",
    allowSecrets: [],
    rules: [],
    maxFileBytes: 32 * 1024 * 1024,
  };
}
