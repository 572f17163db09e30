/** Runs every benchmark one after another, each in a process of its own; `npm run bench -- NAME…` runs some. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What the benchmarks share; the rest of the folder are benchmarks. */
const PARTS = new Set([
  "all.ts",
  "baselines.ts",
  "chunk-shape.ts",
  "chunking-data.ts",
  "chunking-quality.ts",
  "corpus.ts",
  "daemon.ts",
  "docs-sample.ts",
  "judged-sets.ts",
  "judged-store.ts",
  "known-tree.ts",
  "logistic.ts",
  "no-op-peers.ts",
  "peers.ts",
  "plain-service.ts",
  "ranking-quality.ts",
  "report.ts",
  "sample.ts",
  "separators.ts",
  "significance.ts",
  "tree.ts",
  "vector-cache.ts",
]);
/** Longest time of one benchmark, in milliseconds. */
const BENCH_MS_MAX = 20 * 60_000;

const folder = fileURLToPath(new URL(".", import.meta.url));
const wanted = process.argv.slice(2);
let failed = 0;
for (const file of readdirSync(folder).toSorted()) {
  if (!file.endsWith(".ts") || PARTS.has(file)) continue;
  if (wanted.length > 0 && !wanted.includes(file.slice(0, -3))) continue;
  process.stdout.write(`\n## ${file.slice(0, -3)}\n`);
  const { status } = spawnSync(process.execPath, ["--expose-gc", `${folder}${file}`], {
    stdio: "inherit",
    timeout: BENCH_MS_MAX,
  });
  if (status !== 0) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
