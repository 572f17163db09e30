/**
 * Starting again over an unchanged tree: nothing is read, nothing is sent. The limit to compare with is three times `find
 * -printf` of the tree plus chokidar's own time to ready; the peers are rclone's and restic's runs over a tree that they
 * have already. Everything is measured in this run, turn about.
 *
 *     node bench/restart.ts [files=100000]
 *
 * 100,000 files of 1 KB, five rounds: three minutes, half of it for restic's and rclone's first copies.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram, stop, temporaryFolder, until } from "../test/e2e/program.ts";
import { writeKnownLedger } from "./known-tree.ts";
import { noOpPeers } from "./no-op-peers.ts";
import { OWNER, openPlainService } from "./plain-service.ts";
import { median, printTable, residentMb } from "./report.ts";
import { writeTree } from "./tree.ts";

const ROUNDS = 5;
const files = Number(process.argv[2] ?? 100_000);

const tree = temporaryFolder("bench-tree");
const state = temporaryFolder("bench-state");
writeTree(tree.path, { files, folders: Math.ceil(files / 100), meanBytes: 1000 });
const service = await openPlainService();
const config = writeConfig();
await writeKnownLedger(tree.path, state.path, service.url);

const chokidarScript = `
  const { watch } = await import(${JSON.stringify(import.meta.resolve("chokidar"))});
  const start = performance.now();
  const watcher = watch(process.argv[1], { ignoreInitial: true, followSymlinks: false });
  watcher.on("ready", () => { console.log(performance.now() - start); process.exit(); });`;
let memoryMb = 0;
const peers = noOpPeers(tree.path);
const contenders: { readonly name: string; readonly run: () => number | Promise<number> }[] = [
  { name: "find -printf", run: () => timed(find) },
  {
    name: "chokidar ready",
    run: () => {
      const args = ["--input-type=module", "-e", chokidarScript, tree.path];
      return Number(spawnSync(process.execPath, args, { encoding: "utf8" }).stdout);
    },
  },
  { name: "`kbsync run`, from its start to agreement", run: runUntilAgreement },
  { name: "`kbsync sync`, whole process", run: () => timed(syncOnce) },
  ...peers.map(({ name, run }) => ({ name, run: () => timed(run) })),
];
const times = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
for (let round = 0; round < ROUNDS; round++)
  for (const { name, run } of contenders) times.get(name)?.push(await run());

const msOf = (name: string): number => median(times.get(name) ?? []);
const limit = 3 * msOf("find -printf") + msOf("chokidar ready");
const ours = msOf("`kbsync run`, from its start to agreement");
const once = msOf("`kbsync sync`, whole process");
const row = (name: string, ms: number, note = ""): string[] => [
  name,
  ms.toFixed(0),
  (ours / ms).toFixed(2),
  (once / ms).toFixed(2),
  note,
];
printTable(
  [`start over ${files} unchanged files`, "ms", "run / it", "sync / it", ""],
  [
    row("`kbsync run`, from its start to agreement", ours, `${memoryMb.toFixed(0)} MB then`),
    row("`kbsync sync`, whole process", once),
    row(
      "3 × find -printf + chokidar ready",
      limit,
      `find ${msOf("find -printf").toFixed(0)} ms, chokidar ${msOf("chokidar ready").toFixed(0)} ms`,
    ),
    ...peers.map(({ name }) => row(name, msOf(name))),
  ],
);
const { creates, updates, lists } = await service.counts();
console.log(`requests of all starts: ${creates} creates, ${updates} updates, ${lists} lists`);
service.close();
for (const { close } of peers) close();
for (const folder of [tree, state]) folder.remove();

function writeConfig(): string {
  const path = join(state.path, "kbsync.config.json");
  const keyFile = join(state.path, "service-key");
  writeFileSync(keyFile, "k", { mode: 0o600 });
  writeFileSync(
    path,
    JSON.stringify({
      service: { apiUrl: service.url, dbUrl: service.url, resourcesUrl: service.url, pauthkeyFile: keyFile },
      stateDir: state.path,
      sources: [{ path: tree.path, ownerId: OWNER }],
    }),
  );
  return path;
}

function find(): void {
  execFileSync("find", [tree.path, "-printf", "%p %s %T@ %C@ %i\\n"], { maxBuffer: 1e9 });
}

function syncOnce(): void {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, "..", "dist", "main.js"), "sync", "--config", config],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`kbsync sync ended with ${status}: ${stdout}${stderr}`);
}

async function runUntilAgreement(): Promise<number> {
  const start = performance.now();
  const daemon = startProgram(["run", "--config", config]);
  await until("agreement", () => daemon.output.stdout.includes(" searchable, "), 600_000);
  const ms = performance.now() - start;
  if (!daemon.output.stdout.includes("nothing to send"))
    throw new Error(`something was sent: ${daemon.output.stdout}`);
  memoryMb = residentMb(daemon.child.pid);
  await stop(daemon);
  return ms;
}

function timed(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}
