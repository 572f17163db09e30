import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import sharp, { type Sharp } from "sharp";
import { openDrawnPdf } from "../../../../src/kb/ingest/extract/ocr-page-image.ts";
import { buildPdf, type PageContent, textPage } from "./pdf-fixture.ts";

/** White margin around the text of `picture`. */
export const MARGIN_PX = 40;

/** Draws a strip with lines of text like a scan at 150 dots an inch, in the font of the PDF package. */
export async function picture(lines: readonly string[]): Promise<Sharp> {
  const folder = await mkdtemp(join(tmpdir(), "kbsync-picture-"));
  try {
    const path = join(folder, "page.pdf");
    await writeFile(path, buildPdf([textPage(lines)]));
    const pdf = await openDrawnPdf(path, 2_200_000);
    const drawn = await pdf.draw(1);
    if (drawn === undefined) throw new Error("the page was drawn empty");
    const { data, info } = await drawn
      .trim({ background: "#fff" })
      .extend({ top: MARGIN_PX, bottom: MARGIN_PX, left: MARGIN_PX, right: MARGIN_PX, background: "#fff" })
      .raw()
      .toBuffer({ resolveWithObject: true });
    return sharp(data, { raw: { width: info.width, height: info.height, channels: info.channels } });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * Draws lines of strokes like an unknown script, which a recogniser reads as scraps. Small, because scraps are the slowest
 * to recognise: each is tried in all orientations.
 */
export function drawing(): Sharp {
  let seed = 7;
  const draw = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7f_ff_ff_ff;
    return (seed / 0x7f_ff_ff_ff) * below;
  };
  let strokes = "";
  for (let sign = 0; sign < 60; sign++) {
    const left = 40 + (sign % 15) * 36;
    const bottom = 60 + Math.floor(sign / 15) * 64;
    for (let point = 0; point < 5; point++) {
      const x = left + draw(24);
      const y = bottom - draw(30);
      strokes += `${point === 0 || point === 3 ? "M" : "L"}${x} ${y}`;
    }
  }
  const path = `<path d="${strokes}" fill="none" stroke="#000" stroke-width="3"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="330">${path}</svg>`;
  return sharp(Buffer.from(svg)).flatten({ background: "#fff" });
}

/** Builds a page of a PDF with a picture and no text. No higher than the picture needs: an empty half is drawn and searched too. */
export async function scannedPage(drawn: Sharp): Promise<PageContent> {
  const { data, info } = await drawn.clone().greyscale().raw().toBuffer({ resolveWithObject: true });
  const height = Math.round((500 * info.height) / info.width);
  const head = `q 500 0 0 ${height} 56 ${700 - height} cm BI /W ${info.width} /H ${info.height} /CS /G /BPC 8 /F /Fl ID `;
  return {
    bytes: Buffer.concat([Buffer.from(head), deflateSync(data), Buffer.from(" EI Q")]),
    box: [0, 660 - height, 612, 740],
  };
}

/** Builds a Windows bitmap of 24 bits a pixel, which sharp does not write. */
export async function bitmap(drawn: Sharp): Promise<Buffer> {
  const { data, info } = await drawn
    .clone()
    .flip()
    .toColourspace("srgb")
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const rowBytes = Math.ceil((info.width * 3) / 4) * 4;
  const pixels = Buffer.alloc(rowBytes * info.height);
  for (let y = 0; y < info.height; y++) {
    for (let x = 0; x < info.width; x++) {
      const grey = data[(y * info.width + x) * info.channels] ?? 0;
      pixels.fill(grey, y * rowBytes + x * 3, y * rowBytes + x * 3 + 3);
    }
  }
  return Buffer.concat([bitmapHeader(info.width, info.height, pixels.length), pixels]);
}

/** Builds only the header: a picture of any size in 54 bytes. */
export function bitmapHeader(width: number, height: number, pixelBytes = 0): Buffer {
  const header = Buffer.alloc(54);
  header.write("BM");
  header.writeUInt32LE(54 + pixelBytes, 2);
  header.writeUInt32LE(54, 10);
  header.writeUInt32LE(40, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(height, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(24, 28);
  header.writeUInt32LE(pixelBytes, 34);
  return header;
}

/** Returns the share of the known words that were read, with repeats. */
export function recall(truth: string, read: string): number {
  const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const left = new Map<string, number>();
  for (const word of wordsOf(read)) left.set(word, (left.get(word) ?? 0) + 1);
  const known = wordsOf(truth);
  const found = known.filter((word) => {
    const count = left.get(word) ?? 0;
    left.set(word, count - 1);
    return count > 0;
  });
  return found.length / known.length;
}
