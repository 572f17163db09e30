/**
 * What the sync engine costs a file: a first sync of generated files against a service that answers at once, beside a
 * bare loop that posts the same bodies over the same number of connections. Both in this process, turn about.
 *
 *     node bench/sync-engine.ts [files=20000] [rounds=5]
 *
 * With the defaults 20,000 files of 93 MB are sent ten times and a bit: about two minutes.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { CONCURRENCY_EMBEDDED } from "../src/config/schema/sync.ts";
import { openPlainService } from "./plain-service.ts";
import { openBenchDaemon } from "./daemon.ts";
import { median, printTable } from "./report.ts";
import { writeTree } from "./tree.ts";

/** The target: the engine's files a second, as a share of the bare loop's. */
const SHARE_MIN = 0.7;

const files = Number(process.argv[2] ?? 20_000);
const rounds = Number(process.argv[3] ?? 5);
const base = mkdtempSync(join(tmpdir(), "kbsync-bench-"));
const root = join(base, "docs");
const service = await openPlainService();
try {
  writeTree(root, { files, folders: Math.ceil(files / 50), meanBytes: 4650 });
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".md"),
  );
  await bare(paths.slice(0, 3000)); // Both sides are compiled before anything is measured.
  await engine("warm");
  const runs: { bare: Timed; engine: Timed; unchanged: Timed }[] = [];
  for (let round = 0; round < rounds; round++) {
    runs.push({
      bare: await timed(() => bare(paths)),
      engine: await timed(() => engine(`state-${round}`)),
      unchanged: await timed(() => engine(`state-${round}`)),
    });
  }
  const row = (name: string, pick: (run: (typeof runs)[number]) => Timed): string[] => [
    name,
    perFile(median(runs.map((run) => pick(run).ms))),
    perFile(median(runs.map((run) => pick(run).cpuMs))),
    median(runs.map((run) => run.bare.ms / pick(run).ms)).toFixed(2),
    median(runs.map((run) => run.bare.cpuMs / pick(run).cpuMs)).toFixed(2),
  ];
  printTable(
    [`${files} files`, "time a file", "CPU a file", "bare loop's time / it", "bare loop's CPU / it"],
    [
      row("bare undici loop", (run) => run.bare),
      row("first sync", (run) => run.engine),
      row("the same again, unchanged", (run) => run.unchanged),
    ],
  );
  console.log(`target: ${SHARE_MIN} of the bare loop's throughput`);
} finally {
  service.close();
  rmSync(base, { recursive: true, force: true });
}

async function engine(state: string): Promise<void> {
  const daemon = openBenchDaemon(root, join(base, state), service.url);
  const { status } = await daemon.syncOnce();
  if (status.sources[0]?.searchable !== files) throw new Error(JSON.stringify(status));
  await daemon.close();
}

async function bare(paths: readonly string[]): Promise<void> {
  const pool = new Pool(service.url, { connections: CONCURRENCY_EMBEDDED });
  const settings = { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 };
  let next = 0;
  const lane = async (): Promise<void> => {
    for (;;) {
      const path = paths[next++];
      if (path === undefined) return;
      const body = JSON.stringify({
        title: path,
        description: path,
        settings,
        content: readFileSync(join(root, path), "utf8"),
        collection_details: "fastest",
        owner_id: "bench",
      });
      const headers = { pauthkey: "k", "content-type": "application/json" };
      const answer = await pool.request({ method: "POST", path: "/api/rag/resource", headers, body });
      JSON.parse(await answer.body.text());
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY_EMBEDDED }, lane));
  await pool.close();
}

interface Timed {
  readonly ms: number;
  readonly cpuMs: number;
}

async function timed(work: () => Promise<void>): Promise<Timed> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1000 };
}

function perFile(ms: number): string {
  return `${((1000 * ms) / files).toFixed(0)} µs`;
}
