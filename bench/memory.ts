/**
 * Memory of the daemon alone (`kbsync run`) over 100,000 files, during the first sync, over a restart and at rest, and
 * the CPU time it takes at rest. The service runs in a process of its own. Beside it, in the same run, chokidar alone on
 * the same tree.
 *
 *     node bench/memory.ts [seconds at rest=60]
 *
 * 100,000 files of 1 KB, sent once, and a minute of rest: about three minutes.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { openPlainService } from "./plain-service.ts";
import { peakMb, printTable, residentMb } from "./report.ts";
import { writeTree } from "./tree.ts";

const FILES = 100_000;
/** The targets, in MB. */
const PEAK_MB = 300;
const REST_MB = 200;
/** By then the daemon has given back what the first pass took, and rests. */
const CALM_MS = 20_000;
/** The kernel counts CPU time in hundredths of a second. */
const TICK_MS = 10;

const restSeconds = Number(process.argv[2] ?? 60);
const tree = temporaryFolder("bench-tree");
const state = temporaryFolder("bench-state");
writeTree(tree.path, { files: FILES, folders: 1000, meanBytes: 1000 });

const service = await openPlainService({ keep: true });
const config = join(state.path, "kbsync.config.json");
const keyFile = join(state.path, "service-key");
writeFileSync(keyFile, "k", { mode: 0o600 });
writeFileSync(
  config,
  JSON.stringify({
    service: { apiUrl: service.url, dbUrl: service.url, resourcesUrl: service.url, pauthkeyFile: keyFile },
    stateDir: state.path,
    sources: [{ path: tree.path }],
  }),
);

const chokidarScript = `
  const { readFileSync } = await import("node:fs");
  const { watch } = await import(${JSON.stringify(import.meta.resolve("chokidar"))});
  watch(process.argv[1], { ignoreInitial: true, followSymlinks: false }).on("ready", () => {
    console.log(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1] / 1024);
    process.exit();
  });`;
const chokidar = Number(
  spawnSync(process.execPath, ["--input-type=module", "-e", chokidarScript, tree.path], { encoding: "utf8" })
    .stdout,
);

const rows: string[][] = [];
for (const name of ["first sync", "restart"]) {
  const start = performance.now();
  const daemon = startProgram(["run", "--config", config]);
  await until("agreement", () => daemon.output.stdout.includes(" searchable, "), 900_000);
  const seconds = (performance.now() - start) / 1000;
  const peak = peakMb(daemon.child.pid);
  await sleep(CALM_MS);
  const cpuBefore = cpuMs(daemon.child.pid);
  const restStart = performance.now();
  await sleep(restSeconds * 1000);
  const share = (cpuMs(daemon.child.pid) - cpuBefore) / (performance.now() - restStart);
  const rest = residentMb(daemon.child.pid);
  rows.push([
    name,
    `${seconds.toFixed(1)} s`,
    `${peak.toFixed(0)} MB`,
    `${rest.toFixed(0)} MB`,
    `${(100 * share).toFixed(2)} %`,
    (peak / PEAK_MB).toFixed(2),
    (rest / REST_MB).toFixed(2),
    (peak / chokidar).toFixed(2),
  ]);
  await stop(daemon);
}
printTable(
  [
    `daemon over ${FILES} files`,
    "time",
    "peak",
    "at rest",
    `CPU at rest, ${restSeconds} s`,
    `peak / ${PEAK_MB} MB`,
    `at rest / ${REST_MB} MB`,
    `peak / chokidar alone (${chokidar.toFixed(0)} MB)`,
  ],
  rows,
);
service.close();
for (const folder of [tree, state]) folder.remove();

/** CPU time of a process and its threads so far (fields utime and stime of proc_pid_stat). */
function cpuMs(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name stands in brackets and may hold anything; the third field follows it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
