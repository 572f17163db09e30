import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp, { type Sharp } from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openExtractor, type Extraction } from "../../../../src/kb/ingest/extract/extract.ts";
import { detectMediaType } from "../../../../src/kb/ingest/extract/media-type.ts";
import { ocrText } from "../../../../src/kb/ingest/extract/ocr-layout.ts";
import { openOcr } from "../../../../src/kb/ingest/extract/ocr.ts";
import { buildPdf, textPage } from "./pdf-fixture.ts";
import { bitmap, bitmapHeader, drawing, MARGIN_PX, picture, recall, scannedPage } from "./picture-fixture.ts";

const samples = join(import.meta.dirname, "../../../../../shared/data/images");
/** Other systems do not report the processor time of a process. */
const linux = process.platform === "linux";
const LINES = ["Minutes of the harbour board", "", "The new crane lifts forty tons."];
const CLIENT = { lane: "client" } as const;
const TEXT = "Minutes of the harbour board\n\nThe new crane lifts forty tons.";

/** A picture takes half a second, and much longer on a busy machine. */
const SLOW = { timeout: 120_000 };

let folder = "";
let files = 0;
let drawn: Sharp;
const extractor = openExtractor();
const ocr = openOcr();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-ocr-"));
  drawn = await picture(LINES);
}, SLOW.timeout);
afterAll(async () => {
  extractor.close();
  ocr.close();
  await rm(folder, { recursive: true });
});

async function write(bytes: Uint8Array): Promise<string> {
  const path = join(folder, `picture ${files++}`);
  await writeFile(path, bytes);
  return path;
}

async function extract(bytes: Uint8Array, with_ = extractor): Promise<Extraction> {
  const path = await write(bytes);
  // At this priority, a busy machine takes seconds for it and not minutes.
  return await with_.extractText({ path, mediaType: await detectMediaType(path), requester: CLIENT });
}

describe("text in pictures", SLOW, () => {
  it.each<[string, (drawn: Sharp) => Promise<Buffer>]>([
    ["PNG", (strip) => strip.png().toBuffer()],
    ["JPEG", (strip) => strip.jpeg().toBuffer()],
    ["WebP", (strip) => strip.webp().toBuffer()],
    ["GIF", (strip) => strip.gif().toBuffer()],
    ["TIFF", (strip) => strip.tiff().toBuffer()],
    ["BMP", (strip) => bitmap(strip)],
    ["a transparent PNG", (strip) => strip.clone().toColourspace("srgb").unflatten().png().toBuffer()],
    ["a picture that lies on its side", (strip) => strip.rotate(90).png().toBuffer()],
    ["a picture upside down", (strip) => strip.rotate(180).png().toBuffer()],
  ])("recognises the text of %s", async (_name, encode) => {
    expect(await extract(await encode(drawn.clone()))).toEqual({ text: TEXT });
  });

  it("recognises the small text of a screen", async () => {
    const small = await drawn.clone().resize({ width: 500 }).png().toBuffer();
    expect((await extract(small)).text).toBe(TEXT);
  });

  it("returns recognised lines of words with positions and confidence", async () => {
    const path = await write(await drawn.clone().withMetadata({ density: 300 }).png().toBuffer());
    const { pages } = await ocr.readImage(path, "image/png", CLIENT);
    const [page] = pages;
    expect(page?.page).toBe(1);
    const [first, second] = page?.lines ?? [];
    expect(first?.words.map(({ text }) => text)).toEqual(["Minutes", "of", "the", "harbour", "board"]);
    expect(first?.confidence).toBeGreaterThan(0.8);
    expect(first?.confidence).toBeLessThanOrEqual(1);
    const left = first?.words[0]?.box.left ?? 0;
    expect(Math.abs(left - MARGIN_PX)).toBeLessThan(6);
    expect(first?.words.every(({ box }, at, all) => box.left > (all[at - 1]?.box.right ?? 0))).toBe(true);
    expect(first?.box.top).toBeGreaterThan(MARGIN_PX - 12);
    expect(first?.box.bottom).toBeLessThan(MARGIN_PX + 40);
    expect(second?.box.top).toBeGreaterThan(first?.box.bottom ?? Infinity);
    expect(second?.startsParagraph).toBe(true);
  });

  it("recognises the text of each page of a TIFF", async () => {
    const page = await drawn.clone().png().toBuffer();
    const both = await sharp([page, page], { join: { animated: true } })
      .tiff()
      .toBuffer();
    expect(await extract(both)).toEqual({
      text: `${TEXT}\n\n${TEXT}`,
      locations: pagesAt([0, TEXT.length + 2]),
    });
    const one = openExtractor({ ocr: { pagesMax: 1 } });
    await expect(extract(both, one)).rejects.toMatchObject({ code: "too_many_pages" });
    one.close();
  });
});

describe("scanned PDFs", SLOW, () => {
  it("reads a scanned PDF, including pages with a text layer", async () => {
    const scan = await scannedPage(drawn);
    const pdf = buildPdf([textPage(["typed"]), scan, textPage([]), textPage(["again"])]);
    expect(await extract(pdf)).toEqual({
      text: `typed\n\n${TEXT}\n\nagain`,
      locations: pagesAt([0, 7, null, 9 + TEXT.length]),
      fileMetadata: { pages: 4 },
    });
  });

  it("reads the first pages of a scan beyond the limit, and reports the rest", async () => {
    const scan = await scannedPage(drawn);
    const empty = textPage([]);
    const pdf = buildPdf([scan, textPage(["typed"]), empty, scan, empty, textPage(["again"]), scan]);
    const two = openExtractor({ ocr: { pagesMax: 2 } });
    const { warning, ...read } = await extract(pdf, two);
    two.close();
    expect(read).toEqual({
      text: `${TEXT}\n\ntyped\n\nagain`,
      locations: pagesAt([0, TEXT.length + 2, null, null, null, TEXT.length + 9, null]),
      fileMetadata: { pages: 7 },
    });
    expect(warning).toContain("Pages 4–5, 7 were not read: 5 pages have no text layer");
    expect(warning).toContain("first 2 of them");
    expect(warning).toContain("as many as one document may take");
  });

  it("reads a scan until its processor time is used up, at least one page", async () => {
    const scan = await scannedPage(drawn);
    const hasty = openExtractor({ ocr: { documentCpuMs: 0 } });
    const { text, warning } = await extract(buildPdf([scan, scan]), hasty);
    hasty.close();
    expect(text).toBe(TEXT);
    expect(warning).toContain("Page 2 was not read");
  });

  it.runIf(linux)("reads a scan without a failed page, which it reports", async () => {
    const hasty = openExtractor({ ocr: { cpuMs: 0 } });
    const scan = await scannedPage(drawn);
    const { warning, ...read } = await extract(
      buildPdf([textPage(["typed"]), scan, textPage(["again"])]),
      hasty,
    );
    expect(read).toEqual({
      text: "typed\n\nagain",
      locations: pagesAt([0, null, 7]),
      fileMetadata: { pages: 3 },
    });
    const late = "recognising text used 0 s of processor time without finishing";
    expect(warning).toBe(`Page 2 was not read: ${late}.`);
    // Each of them would use its processor time.
    const many = await extract(
      buildPdf([textPage(["typed"]), ...Array.from({ length: 9 }, () => scan)]),
      hasty,
    );
    expect(many.warning).toBe(`Pages 2–4 were not read: ${late}. Pages 5–10 were not tried after these.`);
    await expect(extract(buildPdf([scan, scan]), hasty)).rejects.toMatchObject({
      code: "extraction_timeout",
    });
    hasty.close();
  });

  it("a scan of a thousand pages without text costs only the pages that are tried", async () => {
    const pdf = buildPdf(Array.from({ length: 1000 }, () => textPage([])));
    const two = openExtractor({ ocr: { pagesMax: 2 } });
    await expect(extract(pdf, two)).rejects.toMatchObject({
      code: "pdf_without_text",
      message: expect.stringContaining("its 1000 pages") as string,
    });
    two.close();
  });

  it("a PDF of a thousand typed pages costs no recognition", async () => {
    const pdf = buildPdf(Array.from({ length: 1000 }, (_, at) => textPage([`page ${at}`])));
    const { text, locations } = await extract(pdf);
    expect(locations).toHaveLength(1000);
    expect(text.endsWith("page 999")).toBe(true);
  });

  it("reads a scan once for two concurrent requests", async () => {
    const path = await write(buildPdf([await scannedPage(drawn)]));
    const file = { path, mediaType: "application/pdf" } as const;
    const [one, two] = await Promise.all([extractor.extractText(file), extractor.extractText(file)]);
    expect(two).toBe(one);
  });
});

describe("what is recognised in a drawing", SLOW, () => {
  it("excludes scraps recognised in a drawing from the text, and says so", async () => {
    const { text, warning } = await extract(await drawing().png().toBuffer());
    expect(text).toBe("");
    expect(warning).toMatch(/^Page 1 was left out: .* no text/);
  });

  it("scraps on one page do not change the text of other pages", async () => {
    const pdf = buildPdf([await scannedPage(drawn), await scannedPage(drawing()), textPage(["typed"])]);
    const { text, warning } = await extract(pdf);
    expect(text).toBe(`${TEXT}\n\ntyped`);
    expect(warning).toMatch(/^Page 2 was left out: /);
  });

  it.skipIf(!existsSync(samples)).each(["tesseract/hebrew.png", "tesseract/devatest.png"])(
    "excludes scraps of a script that is not recognised: %s (skipped without ../shared/data/images)",
    async (name) => {
      const { text, warning } = await extract(readFileSync(join(samples, name)));
      expect(text).toBe("");
      expect(warning).toContain("kb.ocr.languages");
    },
  );

  it
    .skipIf(!existsSync(samples))
    .each([
      "ocrmypdf/baiona_gray.png",
      "ocrmypdf/typewriter.png",
      "ocrmypdf/crom.png",
      "tesseract/deslant.tif",
      "tesseract/trainingital.tif",
    ])("does not mistake words for scraps: %s (skipped without ../shared/data/images)", async (name) => {
    const { text, warning } = await extract(readFileSync(join(samples, name)));
    expect(text).toMatch(/\p{L}{4}/u);
    expect(warning).toBeUndefined();
  });
});

describe("pictures that are none, or too much", SLOW, () => {
  const bomb = (): Promise<Buffer> =>
    sharp({
      create: { width: 10_000, height: 10_000, channels: 3, background: "#fff" },
      limitInputPixels: false,
    })
      .greyscale()
      .png({ compressionLevel: 1 })
      .toBuffer();

  it.each<[string, () => Promise<Uint8Array>, string]>([
    ["a picture of 10,000 × 10,000 pixels", bomb, "image_too_large"],
    [
      "the header of a bitmap of that size",
      () => Promise.resolve(bitmapHeader(10_000, -10_000, 0)),
      "image_too_large",
    ],
    [
      "a truncated picture",
      async () => (await drawn.clone().png().toBuffer()).subarray(0, 3000),
      "damaged_image",
    ],
    [
      "a picture that is only a header",
      () => Promise.resolve(Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")),
      "damaged_image",
    ],
    [
      "a picture of one colour",
      () =>
        sharp({ create: { width: 300, height: 300, channels: 3, background: "#3a7" } })
          .png()
          .toBuffer(),
      "image_without_text",
    ],
  ])("refuses %s", async (_name, make, code) => {
    const bytes = await make();
    const refused = extract(bytes);
    await expect(refused).rejects.toMatchObject({ code, hint: expect.stringMatching(/./) as string });
    await expect(refused).rejects.not.toThrow(folder);
    // The next picture is read.
    expect((await extract(await drawn.clone().png().toBuffer())).text).toBe(TEXT);
  });

  it("reads the pages of a TIFF one by one, until the processor time of the document is used up", async () => {
    const page = await drawn.clone().resize({ width: 2400 }).png().toBuffer();
    const bytes = await sharp([page, page, page], { join: { animated: true } })
      .tiff({ compression: "none" })
      .toBuffer();
    const path = await write(bytes);
    const brief = openOcr({ documentCpuMs: 0 });
    const { pages, unread } = await brief.readImage(path, "image/tiff", CLIENT);
    brief.close();
    expect([pages.length, unread]).toEqual([
      1,
      [
        { page: 2, why: "bound" },
        { page: 3, why: "bound" },
      ],
    ]);
  });

  it("starts no recogniser for a picture that is too small for a letter", async () => {
    const dataDir = await mkdtemp(join(folder, "data-"));
    await writeFile(join(dataDir, "eng.traineddata"), "no data of a language");
    const blind = openOcr({ dataDir });
    const rule = (height: number): Promise<Buffer> => drawn.clone().resize(300, height).png().toBuffer();
    const read = async (height: number): Promise<unknown> =>
      await blind.readImage(await write(await rule(height)), "image/png", CLIENT);
    expect(await read(4)).toMatchObject({ pages: [{ page: 1, lines: [] }], unread: [] });
    await expect(read(5)).rejects.toThrow(/./);
    blind.close();
  });

  it.runIf(linux)("gives up a picture that used its processor time", async () => {
    const hasty = openExtractor({ ocr: { cpuMs: 0 } });
    await expect(extract(await drawn.clone().png().toBuffer(), hasty)).rejects.toMatchObject({
      code: "extraction_timeout",
    });
    hasty.close();
  });
});

describe("languages", () => {
  it("reports a language without data at once, and where to put the data", () => {
    expect(() => openOcr({ languages: ["eng", "deu"] })).toThrow(
      expect.objectContaining({
        code: "ocr_data_missing",
        hint: expect.stringContaining("TESSDATA_PREFIX") as string,
      }),
    );
  });
});

describe.skipIf(!existsSync(samples))("sample pictures (skipped without ../shared/data/images)", SLOW, () => {
  it.each([
    ["ocrmypdf/crom.png", 0.9],
    ["tesseract/phototest.tif", 0.9],
    ["tesseract/phototest-rotated-L.png", 0.9],
    ["tesseract/eurotext.tif", 0.9],
  ])("%s: at least %d of the known words", async (name, least) => {
    const path = join(samples, name);
    const truth = readFileSync(path.replace(/\.\w+$/, ".truth.txt"), "utf8");
    const { pages } = await ocr.readImage(path, await detectMediaType(path), CLIENT);
    expect(recall(truth, pages.map(ocrText).join("\n"))).toBeGreaterThanOrEqual(least);
  });
});

/** The locations of pages, by where their texts begin; null for a page without text. */
function pagesAt(starts: readonly (number | null)[]): object[] {
  return starts.flatMap((start, at) => (start === null ? [] : [{ start, page: at + 1 }]));
}
