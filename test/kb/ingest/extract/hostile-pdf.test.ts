import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openExtractor, type Extraction, type Extractor } from "../../../../src/kb/ingest/extract/extract.ts";
import { pdfCpuMs, pdfPagesMax } from "../../../../src/kb/ingest/extract/pdf-budget.ts";
import { buildPdf, dashedPdf, nestedFormsPdf, repeatedPagePdf, textPage } from "./pdf-fixture.ts";

const linux = process.platform === "linux";

let folder: string;
let extractor: Extractor;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-hostile-"));
  extractor = openExtractor();
});
afterAll(async () => {
  extractor.close();
  await rm(folder, { recursive: true });
});

let files = 0;
async function extract(pdf: Buffer, account: string, signal?: AbortSignal): Promise<Extraction> {
  const path = join(folder, `${(files += 1)}.pdf`);
  await writeFile(path, pdf);
  // At this priority, a busy machine takes seconds for it and not minutes.
  const requester = { tenant: [account, "owner"], lane: "client", signal } as const;
  return await extractor.extractText({ path, mediaType: "application/pdf", requester });
}

describe("a small PDF that asks for much", () => {
  it("refuses a small PDF with 200,000 references to one page before it reads them", async () => {
    await expect(extract(repeatedPagePdf(200_000), "hostile")).rejects.toMatchObject({
      code: "too_many_pages",
      message: expect.stringContaining("200000 pages"),
    });
  });

  it.runIf(linux)(
    "gives up a small PDF that takes long to draw after the processor time for its size",
    async () => {
      const pdf = dashedPdf();
      expect(pdf.length).toBeLessThan(8 * 1024);
      await expect(extract(pdf, "hostile")).rejects.toMatchObject({
        code: "extraction_timeout",
        message: expect.stringContaining(`${Math.round(pdfCpuMs(pdf.length) / 1000)} s of processor time`),
      });
    },
  );

  it("refuses a PDF whose forms nest too deeply to be drawn", async () => {
    await expect(extract(nestedFormsPdf(), "hostile")).rejects.toMatchObject({ code: "damaged_pdf" });
  });

  it("small hostile PDFs delay no other account's PDF, however many wait", async () => {
    const stop = new AbortController();
    let ended = 0;
    const hostile = Array.from({ length: 6 }, async () => {
      await extract(dashedPdf(), "hostile", stop.signal).catch(() => undefined);
      ended += 1;
    });
    const good = await extract(buildPdf([textPage(["good words"])]), "good");
    expect([good.text, ended]).toEqual(["good words", 0]);
    stop.abort(new Error("enough"));
    await Promise.all(hostile);
  });
});

it("a PDF's limits on time and pages grow with its size", () => {
  expect([0, 8 * 1024, 1024 * 1024].map((bytes) => Math.round(pdfCpuMs(bytes)))).toEqual([
    10_000, 10_078, 20_000,
  ]);
  expect([0, 8 * 1024, 1024 * 1024].map(pdfPagesMax)).toEqual([1000, 1081, 11_485]);
});
