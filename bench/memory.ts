/**
 * Peak memory of the daemon alone (`kbsync run`) over 100,000 files, during the first sync and over a restart; the
 * service runs in a process of its own. Beside it, in the same run, chokidar alone on the same tree.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram, startUp, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { peakMb, printTable, residentMb } from "./report.ts";
import { writeTree } from "./tree.ts";

const FILES = 100_000;
/** The target, in MB. */
const PEAK_MB = 300;

const tree = temporaryFolder("bench-tree");
const state = temporaryFolder("bench-state");
const serviceState = temporaryFolder("bench-service");
writeTree(tree.path, { files: FILES, folders: 1000, meanBytes: 1000 });

const service = await startUp(["serve", "--port", "0"], serviceState.path);
const config = join(state.path, "kbsync.config.json");
writeFileSync(
  config,
  JSON.stringify({
    service: {
      apiUrl: service.url,
      dbUrl: service.url,
      resourcesUrl: service.url,
      pauthkeyFile: join(serviceState.path, "pauthkey"),
    },
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
  await until("agreement", () => daemon.output.stdout.includes("in agreement"), 600_000);
  const seconds = (performance.now() - start) / 1000;
  const peak = peakMb(daemon.child.pid);
  await sleep(5000); // at rest: what the collector gives back by itself, it gives back by now
  const rest = residentMb(daemon.child.pid);
  rows.push([
    name,
    `${seconds.toFixed(1)} s`,
    `${peak.toFixed(0)} MB`,
    `${rest.toFixed(0)} MB`,
    (peak / PEAK_MB).toFixed(2),
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
    `peak / ${PEAK_MB} MB`,
    `peak / chokidar alone (${chokidar.toFixed(0)} MB)`,
  ],
  rows,
);
await stop(service);
for (const folder of [tree, state, serviceState]) folder.remove();
