import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openExtractor } from "../../../../src/kb/ingest/extract/extract.ts";
import type { Extractor } from "../../../../src/kb/ingest/extract/extract.ts";
import { structuredText } from "../../../../src/kb/ingest/extract/structured-text.ts";
import type { TextForm } from "../../../../src/kb/ingest/extract/text-form.ts";
import { pageText } from "../../../../src/kb/ingest/page/page-text.ts";

let folder: string;
let extractor: Extractor;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-stall-"));
  extractor = openExtractor();
});
afterAll(async () => {
  extractor.close();
  await rm(folder, { recursive: true });
});

const NESTED = `<!doctype html><body>${"<ul><li>".repeat(90)}${"<p>x\n".repeat(8000)}`;

const laidOut = (text: string, form: TextForm): string => structuredText(text, form).text;

describe("a long document blocks no other request", () => {
  it.each([
    ["a table of two columns", "csv", `aa,bb\n${"1,2\n".repeat(150_000)}`, laidOut],
    ["JSON of digits", "json", `[${"1,".repeat(500_000)}1]`, laidOut],
    [
      "a page of lists in lists",
      "page",
      NESTED,
      (text: string) => pageText(Buffer.from(text), undefined, ""),
    ],
  ] as const)("reads without blocking this thread %s", async (_name, form, text, inPlace) => {
    const path = join(folder, "a");
    await writeFile(path, text);
    const file = { path, mediaType: "text/plain", form } as const;
    // Measures only this thread, whatever else the machine does.
    const before = process.threadCpuUsage();
    const expected = inPlace(text, form);
    const own = process.threadCpuUsage(before);
    const start = process.threadCpuUsage();
    const read = await extractor.extractText(file);
    const spent = process.threadCpuUsage(start);
    expect(read.text === expected).toBe(true);
    expect(spent.user + spent.system).toBeLessThan((own.user + own.system) / 2);
  });
});
