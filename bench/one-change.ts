/**
 * What one change costs in a folder of 1,000 files and in one of 100,000: the CPU time of the whole process, its threads
 * included, and the time from the write to the acknowledged request. The two daemons run side by side, and their files
 * are written turn about, so that whatever else the machine does falls on both.
 *
 *     node bench/one-change.ts [changes=100]
 *
 * 101,000 files of 1 KB, 100 changes each: a minute, most of it for writing the folders.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openBenchDaemon } from "./daemon.ts";
import { writeKnownLedger } from "./known-tree.ts";
import { openPlainService } from "./plain-service.ts";
import { median, printTable } from "./report.ts";
import { writeTree } from "./tree.ts";

const SIZES = [1000, 100_000];
/** The target: the larger folder's CPU time a change, as a multiple of the smaller one's. */
const RATIO_MAX = 1.2;
/** Short, so that what a change costs is not waiting; long enough that it is one look and not two. */
const SETTLE_MS = 50;
/** A change that has no answer after so long has failed. */
const CHANGE_MS_MAX = 60_000;

/** What a change came to. */
interface Change {
  readonly ms: number;
  readonly cpuMs: number;
}

if (process.argv[2] === "daemon")
  await serve(process.argv[3] ?? "", process.argv[4] ?? "", process.argv[5] ?? "");
else await measure(Number(process.argv[2] ?? 100));

/** The daemon of one folder: makes a change on each order, and prints what it cost. */
async function serve(root: string, state: string, url: string): Promise<void> {
  await writeKnownLedger(root, state, url);
  let acknowledged = (): void => undefined;
  const daemon = openBenchDaemon(root, state, url, {
    settleMs: SETTLE_MS,
    onActivity: ({ action }) => {
      if (action === "update") acknowledged();
    },
  });
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".md"),
  );
  let turn = 0;
  const answer = async (): Promise<void> => {
    process.send?.(await change());
  };
  process.on("message", () => void answer());
  process.once("disconnect", () => stopping.abort());
  process.send?.("ready");
  await running;

  async function change(): Promise<Change> {
    turn += 1;
    const path = paths[(turn * 7919) % paths.length] ?? "";
    const cpu = process.cpuUsage();
    const start = performance.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    acknowledged = resolve;
    appendFileSync(join(root, path), `\nchange ${turn}\n`);
    await promise;
    const ms = performance.now() - start;
    // The acknowledgement is written down within 200 ms, the backlog within 500: both are part of the change.
    await sleep(700);
    const { user, system } = process.cpuUsage(cpu);
    return { ms, cpuMs: (user + system) / 1000 };
  }
}

async function measure(changes: number): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "kbsync-bench-"));
  const service = await openPlainService();
  const daemons = SIZES.map((files) => {
    const root = join(base, `docs-${files}`);
    writeTree(root, { files, folders: Math.ceil(files / 100), meanBytes: 1000 });
    const args = ["daemon", root, join(base, `state-${files}`), service.url];
    const child = fork(fileURLToPath(import.meta.url), args);
    return { files, child, costs: [] as Change[] };
  });
  try {
    for (const { child } of daemons) await messageOf(child);
    for (let round = 0; round < changes; round++) {
      for (const { child, costs } of daemons) {
        child.send("change");
        costs.push((await messageOf(child)) as Change); // what `change` above sends
      }
    }
    const [small] = daemons;
    const rows = daemons.map(({ files, costs }) => [
      files.toLocaleString("en"),
      `${median(costs.map(({ cpuMs }) => cpuMs)).toFixed(1)} ms`,
      `${(median(costs.map(({ ms }) => ms)) - SETTLE_MS).toFixed(1)} ms`,
      ratioTo(costs, small?.costs ?? [], ({ cpuMs }) => cpuMs),
      ratioTo(costs, small?.costs ?? [], ({ ms }) => ms),
    ]);
    printTable(
      [
        "files in the folder",
        "CPU a change",
        `write to answer, beyond the ${SETTLE_MS} ms of settling`,
        "CPU ratio",
        "time ratio",
      ],
      rows,
    );
    console.log(`medians of ${changes} changes each; target: CPU ratio at most ${RATIO_MAX}`);
  } finally {
    for (const { child } of daemons) child.disconnect();
    await Promise.all(daemons.map(({ child }) => once(child, "exit")));
    service.close();
    rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function messageOf(child: ReturnType<typeof fork>): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const ended = (): void => reject(new Error("the daemon ended"));
  const timer = setTimeout(() => reject(new Error("the daemon does not answer")), CHANGE_MS_MAX);
  child.once("message", resolve);
  child.once("exit", ended);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off("exit", ended);
  }
}

function ratioTo(
  costs: readonly Change[],
  base: readonly Change[],
  pick: (change: Change) => number,
): string {
  return (median(costs.map(pick)) / median(base.map(pick))).toFixed(2);
}
