/**
 * What 5,000 renames cost a running daemon: one folder with 5,000 files renamed, then 5,000 files renamed one by one.
 * Counted are the requests, their bytes, and how often a file of the folder was opened. Beside it, in the same run, a bare
 * undici loop that sends as many requests with the same bodies.
 *
 *     node bench/renames.ts [files=5000]
 *
 * 5,000 files of 1 KB: half a minute.
 */
import fs, { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { CONCURRENCY_EMBEDDED } from "../src/config/schema/sync.ts";
import { openBenchDaemon } from "./daemon.ts";
import { openPlainService } from "./plain-service.ts";
import { printTable } from "./report.ts";
import { writeTree } from "./tree.ts";

const files = Number(process.argv[2] ?? 5000);
const SETTLE_MS = 100;

const base = mkdtempSync(join(tmpdir(), "kbsync-bench-"));
const root = join(base, "docs");
const service = await openPlainService();

// Every open of a file of the folder, by anyone in this process, is counted.
let opens = 0;
const openSync = fs.openSync;
fs.openSync = (path, ...rest) => {
  if (String(path).endsWith(".md")) opens += 1;
  return openSync(path, ...rest);
};
const open = fs.promises.open;
fs.promises.open = async (path, ...rest) => {
  if (String(path).endsWith(".md")) opens += 1;
  return open(path, ...rest);
};
syncBuiltinESMExports();

try {
  mkdirSync(root, { recursive: true });
  writeTree(join(root, "old"), { files, folders: Math.ceil(files / 100), meanBytes: 1000 });
  const daemon = openBenchDaemon(root, join(base, "state"), service.url, { settleMs: SETTLE_MS });
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();

  const rows: string[][] = [];
  rows.push(await measure("one folder renamed", () => renameSync(join(root, "old"), join(root, "new"))));
  rows.push(
    await measure("as many files renamed", () => {
      for (const path of readdirSync(root, { recursive: true, encoding: "utf8" })) {
        if (path.endsWith(".md"))
          renameSync(join(root, path), join(root, path.replace(/\.md$/, "-again.md")));
      }
    }),
  );
  printTable(["", "requests", "bytes a request", "files opened", "time", "bare PUT loop", "loop / it"], rows);
  stopping.abort();
  await running;

  async function measure(name: string, act: () => void): Promise<string[]> {
    const before = await service.counts();
    opens = 0;
    const start = performance.now();
    act();
    const sentAll = async (): Promise<boolean> => (await service.counts()).updates - before.updates >= files;
    for (;;) {
      await daemon.whenIdle();
      // The watcher may not have reported it yet, so being idle alone says nothing.
      if (await sentAll()) break;
      await sleep(5);
    }
    const ms = performance.now() - start;
    await daemon.whenIdle();
    const after = await service.counts();
    const requests = Object.entries(after)
      .filter(([count]) => count !== "bytes")
      .reduce((sum, [count, value]) => sum + Number(value) - before[count as keyof typeof before], 0);
    const bytes = (after.bytes - before.bytes) / requests;
    const opened = opens;
    const bareMs = await bare(Math.round(bytes));
    return [
      name,
      `${requests} (${after.updates - before.updates} updates)`,
      bytes.toFixed(0),
      String(opened),
      `${ms.toFixed(0)} ms`,
      `${bareMs.toFixed(0)} ms`,
      (bareMs / (ms - SETTLE_MS)).toFixed(2),
    ];
  }
} finally {
  service.close();
  rmSync(base, { recursive: true, force: true });
}

/** As many requests with bodies of that size, and nothing else. */
async function bare(bytes: number): Promise<number> {
  const pool = new Pool(service.url, { connections: CONCURRENCY_EMBEDDED });
  const start = performance.now();
  let left = files;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      const body = JSON.stringify({ title: "t".repeat(bytes / 2), description: "d".repeat(bytes / 2 - 30) });
      const headers = { pauthkey: "k", "content-type": "application/json" };
      const path = `/api/rag/resource/${left.toString(16).padStart(24, "0")}`;
      const answer = await pool.request({ method: "PUT", path, headers, body });
      JSON.parse(await answer.body.text());
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY_EMBEDDED }, lane));
  const ms = performance.now() - start;
  await pool.close();
  return ms;
}
