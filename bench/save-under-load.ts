/**
 * The time from a save to the first search that finds it by words, while the first sync of 1,000 files runs: 50 saves, edits and
 * renames in each tier, beside the same 50 in a folder without a backlog. Also how long it takes until all texts of the first
 * sync are found by words, in each tier relative to `fastest`. `-- TIER…` measures some tiers only.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
} from "node:fs";
import { writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { z } from "zod";
import { SYNC_CONSTANTS } from "../src/config/schema/sync.ts";
import { TIERS } from "../src/wire/constants.ts";
import type { Tier } from "../src/wire/primitives.ts";
import { startUp, statusOf, stop, temporaryFolder, until, type Running } from "../test/e2e/program.ts";
import { printTable, quantile } from "./report.ts";
import { writeTree } from "./tree.ts";

/** Files of the first sync: texts, of which 272 are real ones, PDFs and scans. */
const TEXTS = 900;
const PDFS = 60;
const SCANS = 40;
/** Texts of the folder without a backlog. */
const QUIET_TEXTS = 60;
const CHANGES = 50;
/** Time between two changes: all of them fall into the first sync, which reads scans for minutes. */
const CHANGE_EVERY_MS = 200;
/** Pause between two searches for one change. Bounds the error of a figure. */
const POLL_MS = 50;
/** A change that is not found by then counts as found at that time. */
const FOUND_MS_MAX = 300_000;
const TEXTS_MS_MAX = 15 * 60_000;

const samples = join(import.meta.dirname, "..", "..", "shared", "data");
const { settleMs } = SYNC_CONSTANTS;
const dispatcher = new Agent({ connections: 64 });

/** A search's hits, as far as this benchmark needs them. */
const Hits = z.object({
  results: z.array(z.object({ payload: z.object({ content: z.string(), filePath: z.string().optional() }) })),
});
const Documents = z.object({ data: z.object({ statuses: z.object({ chunked: z.number() }) }) });

/** One service and daemon, and the scope that its folder has there. */
interface Scope {
  readonly running: Running;
  readonly collectionId: string;
  readonly ownerId: string;
}

if (existsSync(samples)) await measure();
else console.log(`skipped: the sample documents are not at ${samples}`);

async function measure(): Promise<void> {
  const wanted = TIERS.filter((tier) => process.argv.length < 3 || process.argv.includes(tier));
  const rows: string[][] = [];
  let fastestTextsMs: number | undefined;
  for (const tier of wanted) {
    const quiet = await measureFolder(tier, (path) => writeTexts(path, QUIET_TEXTS), true);
    const loaded = await measureFolder(tier, writeBacklog, false);
    if (tier === "fastest") fastestTextsMs = loaded.textsMs;
    const p99 = quantile(loaded.foundMs, 0.99);
    rows.push([
      tier,
      seconds(quantile(loaded.foundMs, 0.5)),
      seconds(p99),
      seconds(p99 - settleMs),
      seconds(quantile(quiet.foundMs, 0.99)),
      (p99 / quantile(quiet.foundMs, 0.99)).toFixed(2),
      seconds(loaded.textsMs),
      fastestTextsMs === undefined ? "-" : (loaded.textsMs / fastestTextsMs).toFixed(2),
    ]);
  }
  printTable(
    [
      "tier",
      "p50 under load",
      "p99 under load",
      `p99 beyond the settle time of ${settleMs} ms`,
      "p99 without a backlog",
      "ratio",
      `all ${TEXTS} texts found by words`,
      "ratio to fastest",
    ],
    rows,
  );
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

/** Starts kbsync on a new folder and changes files: at once, or once the folder is in agreement if `isQuiet`. */
async function measureFolder(
  tier: Tier,
  write: (path: string) => void,
  isQuiet: boolean,
): Promise<{ readonly foundMs: readonly number[]; readonly textsMs: number }> {
  const folder = temporaryFolder("bench-folder");
  const state = temporaryFolder("bench-state");
  write(folder.path);
  const startMs = performance.now();
  const running = await startUp(["up", folder.path, "--tier", tier, "--port", "0"], state.path);
  try {
    if (isQuiet) await until("agreement", () => running.output.stdout.includes(" searchable, "));
    const scope = await until("the collection", async () => {
      const { collectionId, ownerId } = await statusOf(folder.path, state.path);
      return collectionId !== null && { running, collectionId, ownerId };
    });
    const texts = isQuiet ? Promise.resolve(0) : textsFound(scope, startMs);
    const found: Promise<number>[] = [];
    for (let index = 0; index < CHANGES; index++) {
      found.push(changeOne(scope, folder.path, index));
      await sleep(CHANGE_EVERY_MS);
    }
    return { foundMs: await Promise.all(found), textsMs: await texts };
  } finally {
    await stop(running);
    folder.remove();
    state.remove();
  }
}

/** Saves, edits or renames a file, and resolves with the milliseconds until a search finds that. */
async function changeOne(scope: Scope, folder: string, index: number): Promise<number> {
  const word = `unmistakable${index}x`;
  const known = join(folder, "texts", `text-${index}.md`);
  if (index % 5 < 2)
    writeFileSync(join(folder, "texts", `saved-${index}.md`), `# Saved\n\nOne ${word} in it.\n`);
  else if (index % 5 < 4) appendFileSync(known, `\nAn edit with ${word} in it.\n`);
  else renameSync(known, join(folder, "texts", `${word}.md`));
  const startMs = performance.now();
  let elapsedMs = 0;
  do {
    await sleep(POLL_MS);
    const hits = await findWord(scope, word);
    elapsedMs = performance.now() - startMs;
    if (hits.some(({ content, filePath }) => content.includes(word) || filePath?.includes(word) === true))
      break;
  } while (elapsedMs < FOUND_MS_MAX);
  return elapsedMs;
}

async function findWord(
  { running, collectionId, ownerId }: Scope,
  word: string,
): Promise<readonly { readonly content: string; readonly filePath?: string | undefined }[]> {
  const { statusCode, body } = await request(`${running.url}/rag/query`, {
    dispatcher,
    method: "POST",
    headers: { pauthkey: running.key, "content-type": "application/json" },
    body: JSON.stringify({ query: word, collection_id: collectionId, owner_id: ownerId, top_k: 3 }),
  });
  const answer: unknown = await body.json();
  if (statusCode !== 200)
    throw new Error(`a search was answered with ${statusCode}: ${JSON.stringify(answer)}`);
  return Hits.parse(answer).results.map(({ payload }) => payload);
}

/** Resolves with the milliseconds since the start until the service says that all texts are found by words. */
async function textsFound({ running, collectionId, ownerId }: Scope, startMs: number): Promise<number> {
  const query = new URLSearchParams({ collectionId, ownerId, text: "texts/", limit: "1" });
  await until(
    "all texts",
    async () => {
      const { body } = await request(`${running.url}/api/rag/documents?${query.toString()}`, {
        dispatcher,
        headers: { pauthkey: running.key },
      });
      return Documents.parse(await body.json()).data.statuses.chunked >= TEXTS;
    },
    TEXTS_MS_MAX,
  );
  return performance.now() - startMs;
}

/** Writes texts, PDFs and scans. No two files have the same bytes. */
function writeBacklog(folder: string): void {
  writeTexts(folder, TEXTS);
  copyVaried(join(samples, "pdfs"), [".pdf"], join(folder, "pdfs"), PDFS);
  copyVaried(join(samples, "images"), [".png", ".tif"], join(folder, "scans"), SCANS);
}

function writeTexts(folder: string, count: number): void {
  const made = temporaryFolder("bench-texts");
  const texts = join(folder, "texts");
  mkdirSync(texts, { recursive: true });
  const real = filesOf(join(samples, "docs-sample"), [".md"]).slice(0, count);
  for (const [index, path] of real.entries()) cpSync(path, join(texts, `text-${index}.md`));
  writeTree(made.path, { files: count - real.length, folders: 1, meanBytes: 4650 });
  for (const [index, path] of filesOf(made.path, [".md"]).entries())
    cpSync(path, join(texts, `text-${real.length + index}.md`));
  made.remove();
}

/** Copies the samples of some kinds, one after another and again, with a line at their end that their readers ignore. */
function copyVaried(from: string, extensions: readonly string[], to: string, count: number): void {
  mkdirSync(to, { recursive: true });
  const files = filesOf(from, extensions);
  for (let index = 0; index < count; index++) {
    const path = files[index % files.length] ?? "";
    const copy = join(to, `${index}${extname(path)}`);
    writeFileSync(copy, Buffer.concat([readFileSync(path), Buffer.from(`\n% ${index}\n`)]));
  }
}

function filesOf(folder: string, extensions: readonly string[]): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => extensions.includes(extname(name)))
    .toSorted()
    .map((name) => join(folder, name));
}
