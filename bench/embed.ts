/**
 * The local embedding model: texts and tokens a second for chunks of full length and for queries, one text at a time
 * and 32, with one thread and two, and the memory it adds. Each case is run in turn, several times; the ratio is to
 * full-length chunks, one at a time, on one thread.
 */
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import type { LocalEmbedder } from "../src/kb/embed/local.ts";
import { median, printTable } from "./report.ts";

const ROUNDS = 5;
const TEXTS = 32;
/** More words than the model takes tokens, so that each text costs exactly its longest. */
const LONG = Array.from(
  { length: TEXTS },
  (_, i) => `${i} ${"the water level of the river rose ".repeat(60)}`,
);
/** Ten words, the marks at both ends: 12 tokens. */
const SHORT = Array.from({ length: TEXTS }, () => "how do i reset the password of my other account");
const SHORT_TOKENS = 12;

interface Case {
  readonly name: string;
  readonly embedder: LocalEmbedder;
  readonly texts: readonly string[];
  readonly tokens: number;
  readonly textsPerSecond: number[];
}

const startMb = rssMb();
const cases: Case[] = [];
const memory: string[] = [];
const opened: LocalEmbedder[] = [];
for (const threads of [1, 2]) {
  for (const batch of [1, TEXTS]) {
    const before = rssMb();
    const embedder = await open(threads, batch);
    opened.push(embedder);
    await embedder.queries.embed(LONG);
    memory.push(`${threads} thread(s), batch ${batch}: ${(rssMb() - before).toFixed(0)} MB`);
    const kind = `batch ${batch}, threads ${threads}`;
    cases.push(
      { name: `chunks, ${kind}`, embedder, texts: LONG, tokens: embedder.tokensMax, textsPerSecond: [] },
      { name: `queries, ${kind}`, embedder, texts: SHORT, tokens: SHORT_TOKENS, textsPerSecond: [] },
    );
  }
}

for (let round = 0; round < ROUNDS; round++) {
  for (const { embedder, texts, textsPerSecond } of cases) {
    const start = performance.now();
    // Calls of `embed` remember vectors; those of searches do not.
    await embedder.queries.embed(texts);
    textsPerSecond.push((texts.length * 1000) / (performance.now() - start));
  }
}

const first = median(cases[0]?.textsPerSecond ?? []) * (cases[0]?.tokens ?? 0);
printTable(
  ["case", "texts/s", "tokens/s", "ratio of tokens/s"],
  cases.map(({ name, tokens, textsPerSecond }) => {
    const texts = median(textsPerSecond);
    return [name, texts.toFixed(1), (texts * tokens).toFixed(0), ((texts * tokens) / first).toFixed(2)];
  }),
);
console.log(
  `resident memory at the start ${startMb.toFixed(0)} MB; added by each embedder: ${memory.join("; ")}`,
);
for (const embedder of opened) await embedder.close();

async function open(threads: number, batch: number): Promise<LocalEmbedder> {
  const embedder = await openLocalEmbedder({ threads, batchTexts: batch, batchTokens: batch * 256 });
  if (embedder.kind === "no-model") throw new Error(embedder.reason);
  return embedder;
}

function rssMb(): number {
  return process.memoryUsage.rss() / 1e6;
}
