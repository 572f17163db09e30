import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openExtractor, type Extractor } from "../../../../src/kb/ingest/extract/extract.ts";
import { foreignKind } from "../../../../src/lib/capped/foreign.ts";
import { KbsyncError } from "../../../../src/lib/failure.ts";
import { buildPdf, textPage } from "./pdf-fixture.ts";

let folder: string;
let extractor: Extractor;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-foreign-"));
  extractor = openExtractor({ ocr: { pagesMax: 0 } });
});
afterAll(async () => {
  extractor.close();
  await rm(folder, { recursive: true });
});

it.each([
  [new RangeError("Maximum call stack size exceeded"), "deep"],
  [new RangeError("Array buffer allocation failed"), "memory"],
  [Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" }), "machine"],
  [new TypeError("Cannot read properties of undefined (reading 'x')"), "damaged"],
  [new Error("[xmldom error]\telement parse error"), "damaged"],
  ["no error at all", "damaged"],
])("foreignKind classifies an error of a library: %s", (error, kind) => {
  expect(foreignKind(error)).toBe(kind);
});

/** All messages about PDFs, complete. */
const OURS = [
  "the PDF is protected by a password",
  "the PDF is damaged and cannot be read",
  /^the PDF claims to have \d+ pages, more than a file of its size can hold$/,
  /^reading the PDF takes (?:more memory than the limit of \d+ MB|longer than a file of its size may \(.*\))$/,
  "the process reading the PDF crashed, twice",
  /^the PDF has no text on its (?:only page|\d+ pages): it holds images only, or nothing$/,
];

it("the refusal of a broken PDF contains no text of a library", async () => {
  const whole = buildPdf([textPage(["The moon pulls the sea."]), textPage(["Twice a day."])]);
  const foreign = new Set<string>();
  for (let at = 0; at < 20; at++) {
    // Truncated, or with a replaced section; deterministic.
    const from = Math.floor((whole.length * at) / 20);
    const bytes = at % 2 === 0 ? whole.subarray(0, Math.max(8, from)) : Buffer.from(whole);
    if (at % 2 === 1) bytes.fill("0 R <<", Math.max(8, from), Math.min(from + 40, bytes.length));
    const path = join(folder, "a.pdf");
    await writeFile(path, bytes);
    try {
      await extractor.extractText({ path, mediaType: "application/pdf" });
    } catch (error) {
      const message = error instanceof KbsyncError ? error.message : String(error);
      const isOurs = OURS.some((words) =>
        typeof words === "string" ? words === message : words.test(message),
      );
      if (!isOurs) foreign.add(message);
    }
  }
  expect([...foreign]).toEqual([]);
}, 60_000);
