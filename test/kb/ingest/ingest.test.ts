import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { openExtractor } from "../../../src/kb/ingest/extract/extract.ts";
import { CHUNKS_MAX, openIngest } from "../../../src/kb/ingest/ingest.ts";
import type { Ingest, IngestParts } from "../../../src/kb/ingest/ingest.ts";
import { openModel } from "../../../src/kb/ingest/model.ts";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { INLINE_CHARS_MAX } from "../../../src/kb/ingest/split.ts";
import { DEFAULT_SETTINGS } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const opened: Ingest[] = [];
function open(embedder?: Embedder, onStage: IngestParts["onStage"] = () => undefined): Ingest {
  const model = openModel(embedder === undefined ? undefined : async () => embedder, Date.now, {
    onReady: () => undefined,
    onProblem: () => undefined,
  });
  const ingest = openIngest({
    model,
    extractor: openExtractor(),
    busy: () => new Error("busy"),
    stepMs: 50,
    onStage,
  });
  opened.push(ingest);
  return ingest;
}
afterEach(async () => {
  for (const ingest of opened.splice(0)) await ingest.close();
});

const SHORT = "A sentence about the sea. ".repeat(100);
const LONG = "A sentence about the sea. ".repeat(INLINE_CHARS_MAX / 16);

/** Whether the promise is settled once the event loop has come round. */
async function settlesAtOnce(work: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const done = work.finally(() => {
    settled = true;
  });
  await setImmediate();
  const before = settled;
  await done;
  return before;
}

describe("ingest", () => {
  it("ingest chunks short texts in place and long ones in the worker with the same result", async () => {
    const ingest = open();
    const short = ingest.chunk(SHORT, DEFAULT_SETTINGS);
    expect(await settlesAtOnce(short)).toBe(true);
    const long = ingest.chunk(LONG, DEFAULT_SETTINGS);
    expect(await settlesAtOnce(long)).toBe(false);
    const { spans } = await long;
    expect(spans[0]).toEqual((await short).spans[0]);
    expect(spans.at(-1)?.end).toBe(LONG.trimEnd().length);
  });

  it("ingest splits without a call of a model that hangs, unless the strategy needs one", async () => {
    let calls = 0;
    const embedder = hashedEmbedder();
    const ingest = open({
      ...embedder,
      embed: (_texts, signal) => {
        calls += 1;
        return new Promise((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason as Error)),
        );
      },
    });
    expect((await ingest.chunk(SHORT, DEFAULT_SETTINGS)).spans.length).toBeGreaterThan(1);
    expect(calls).toBe(0);
    const semantic = { ...DEFAULT_SETTINGS, strategy: "semantic" } as const;
    expect(await ingest.chunk(SHORT, semantic)).toMatchObject({ strategyUsed: "recursive" });
    expect(calls).toBe(1);
  });

  it("ingest refuses work beyond its queue, and completes the rest", async () => {
    const ingest = open();
    const results = await Promise.allSettled(
      Array.from({ length: 70 }, () => ingest.chunk(LONG, DEFAULT_SETTINGS)),
    );
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toEqual(
      Array.from({ length: 5 }, () => ({ status: "rejected", reason: new Error("busy") })),
    );
  });

  it("ingest extracts the text of a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "kbsync-ingest-"));
    await writeFile(join(folder, "a"), "\ufeffHello.");
    expect(await open().textOf(join(folder, "a"), "text/plain")).toEqual({ text: "Hello." });
    await rm(folder, { recursive: true });
  });
});

it("ingest reports the duration of each stage that succeeded", async () => {
  const stages: string[] = [];
  const seconds: number[] = [];
  const ingest = open(undefined, (stage, duration) => {
    stages.push(stage);
    seconds.push(duration);
  });
  const startMs = performance.now();
  const folder = await mkdtemp(join(tmpdir(), "kbsync-ingest-"));
  await expect(ingest.textOf(join(folder, "missing"), "text/plain")).rejects.toThrow("ENOENT");
  await writeFile(join(folder, "a"), SHORT);
  await ingest.textOf(join(folder, "a"), "text/plain");
  await ingest.chunk(SHORT, DEFAULT_SETTINGS);
  await rm(folder, { recursive: true });
  expect(stages).toEqual(["extract", "chunk"]);
  expect(Math.min(...seconds)).toBeGreaterThan(0);
  expect(seconds.reduce((sum, each) => sum + each)).toBeLessThan((performance.now() - startMs) / 1000);
});

describe("settings that would make chunks without bound are refused", () => {
  it.each([
    ["overlap next to size", { strategy: "recursive", chunkSize: 1000, chunkOverlap: 999 }],
    ["tiny chunks", { strategy: "recursive", chunkSize: 1, chunkOverlap: 0 }],
  ] as const)("refuses too many chunks of a text: %s", async (_name, settings) => {
    const text = "x".repeat(CHUNKS_MAX + 2000);
    await expect(open().chunk(text, settings)).rejects.toMatchObject({ code: "too_many_chunks" });
    const { spans } = await open().chunk(text.slice(0, 5000), settings);
    expect(spans.length).toBeGreaterThan(3000);
  });

  it("settings that would make few chunks of much text are refused", async () => {
    const settings = { strategy: "recursive", chunkSize: 4000, chunkOverlap: 3990 } as const;
    const refused = open().chunk("abcdefghi ".repeat(90_000), settings);
    await expect(refused).rejects.toMatchObject({ code: "too_many_chunks" });
    const { spans } = await open().chunk("abcdefghi ".repeat(1000), settings);
    expect(spans.length).toBeGreaterThan(500);
  });
});
