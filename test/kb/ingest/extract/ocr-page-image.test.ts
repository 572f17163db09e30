import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openDrawnPdf } from "../../../../src/kb/ingest/extract/ocr-page-image.ts";
import { buildPdf, textPage } from "./pdf-fixture.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-page-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** Draws a page of a PDF; returns its size, or undefined for an empty page. */
async function draw(bytes: Uint8Array, page = 1): Promise<string | undefined> {
  const path = join(folder, "a.pdf");
  await writeFile(path, bytes);
  const pdf = await openDrawnPdf(path, 20_000_000);
  const size = await (await pdf.draw(page))?.metadata();
  return size && `${size.width} × ${size.height}, ${size.channels} channel`;
}

/** A page of text in a box of another size. */
const inBox = (box: string): Uint8Array =>
  Buffer.from(
    Buffer.from(buildPdf([textPage(["typed"])]))
      .toString("latin1")
      .replace(/\/MediaBox ?\[[^\]]*\]/, `/MediaBox [${box}]`),
    "latin1",
  );

it("draws a page in greys at 300 dots an inch, and reports an empty one", async () => {
  const pdf = buildPdf([textPage(["typed"]), textPage([])]);
  expect(await draw(pdf)).toBe("2550 × 3300, 1 channel");
  expect(await draw(pdf, 2)).toBeUndefined();
});

it("draws a large page with as many pixels as allowed", async () => {
  expect(await draw(inBox("0 0 14400 14400"))).toBe("4472 × 4472, 1 channel");
});

it.each<[name: string, bytes: Uint8Array, page: number, message: RegExp]>([
  ["a page of a hair's breadth", inBox("0 0 1000000000 1"), 1, /the page has 141421356 × 1 pixels/],
  ["a page that is not there", buildPdf([textPage(["typed"])]), 2, /cannot read page 2/],
  ["an empty file", Buffer.alloc(0), 1, /cannot open it: code 3/],
  ["a file that is cut off", Buffer.from("%PDF-1.7\n1 0 obj"), 1, /cannot open it: code 3/],
])("recognition refuses %s", async (_name, bytes, page, message) => {
  await expect(draw(bytes, page)).rejects.toThrow(message);
});
