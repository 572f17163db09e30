/** A page's content: drawing operators, plain or encoded by a filter. */
export interface PageContent {
  readonly bytes: Uint8Array;
  /** The stream's filter entry, such as `/Filter /FlateDecode`; none for plain content. */
  readonly filter?: string;
  /** Left, lower, right and upper edge in points. Default: US Letter. */
  readonly box?: readonly [number, number, number, number];
}

/** Lays out lines of text from the top of a page, one every 14 points; an empty line leaves a gap. */
export function textPage(lines: readonly string[]): PageContent {
  const shown = lines.map((line) => `(${line.replace(/[\\()]/g, "\\$&")}) Tj 0 -14 Td`);
  return { bytes: Buffer.from(`BT /F1 12 Tf 72 720 Td ${shown.join("\n")} ET`, "latin1") };
}

/** Builds the smallest PDF with the given pages. `isEncrypted`: it requires a password. */
export function buildPdf(
  pages: readonly PageContent[],
  { isEncrypted = false, author }: { isEncrypted?: boolean; author?: string | undefined } = {},
): Buffer {
  const pageNumber = (index: number): number => 4 + 2 * index;
  const objects: Buffer[] = [
    Buffer.from("<< /Type /Catalog /Pages 2 0 R >>"),
    Buffer.from(
      `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, i) => `${pageNumber(i)} 0 R`).join(" ")}] >>`,
    ),
    Buffer.from("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"),
  ];
  for (const [i, { bytes, filter, box = [0, 0, 612, 792] }] of pages.entries()) {
    const content = `/Contents ${pageNumber(i) + 1} 0 R /Resources << /Font << /F1 3 0 R >> >>`;
    objects.push(
      Buffer.from(`<< /Type /Page /Parent 2 0 R /MediaBox [${box.join(" ")}] ${content} >>`),
      Buffer.concat([
        Buffer.from(`<< /Length ${bytes.length} ${filter ?? ""} >>\nstream\n`),
        bytes,
        Buffer.from("\nendstream"),
      ]),
    );
  }
  if (author !== undefined) objects.push(Buffer.from(`<< /Author (${author}) >>`));
  const info = author === undefined ? "" : `/Info ${objects.length} 0 R`;
  return assemble(objects, `${info} ${isEncrypted ? ENCRYPTION : ""}`);
}

/** Builds a PDF with one line in a font outside the file, with a predefined character map (PDF 32000-1, 9.7.5.2). */
export function namedFontPdf(cmap: string, ordering: string, hex: string): Buffer {
  const content = `BT /F1 24 Tf 72 700 Td <${hex}> Tj ET`;
  return assemble(
    [
      "<< /Type /Catalog /Pages 2 0 R >>",
      "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
      "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      `<< /Type /Font /Subtype /Type0 /BaseFont /Some-Font /Encoding /${cmap} /DescendantFonts [6 0 R] >>`,
      `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Some-Font /CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) /Supplement 4 >> /FontDescriptor 7 0 R >>`,
      "<< /Type /FontDescriptor /FontName /Some-Font /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>",
    ].map((object) => Buffer.from(object)),
    "",
  );
}

/** Builds a small PDF of lines with dashes too short to see: a renderer draws each of them for minutes. */
export function dashedPdf(lines = 300): Buffer {
  return buildPdf([{ bytes: Buffer.from(`[0.001 0.001] 0 d ${"0 0 m 600 700 l S ".repeat(lines)}`) }]);
}

/**
 * A page without text that is some kilobytes to store and would take days to draw: each of so many forms draws the next one
 * `times` times, and the last one lines.
 */
export function nestedFormsPdf(depth = 12, times = 10): Buffer {
  const stream = (dictionary: string, content: string): Buffer =>
    Buffer.from(`<< ${dictionary} /Length ${content.length} >>\nstream\n${content}\nendstream`);
  const next = (number: number): string => `/Resources << /XObject << /F ${number} 0 R >> >>`;
  const calls = "/F Do ".repeat(times);
  const forms = Array.from({ length: depth }, (_, at) => {
    const form = "/Type /XObject /Subtype /Form /BBox [0 0 612 792]";
    return at === depth - 1
      ? stream(form, "0 0 m 600 700 l S ".repeat(100))
      : stream(`${form} ${next(6 + at)}`, calls);
  });
  return assemble(
    [
      Buffer.from("<< /Type /Catalog /Pages 2 0 R >>"),
      Buffer.from("<< /Type /Pages /Count 1 /Kids [3 0 R] >>"),
      Buffer.from(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R ${next(5)} >>`),
      stream("", "/F Do"),
      ...forms,
    ],
    "",
  );
}

/** Builds a PDF with many references to one page; each is read as a page of its own. */
export function repeatedPagePdf(references: number): Buffer {
  return assemble(
    [
      Buffer.from("<< /Type /Catalog /Pages 2 0 R >>"),
      Buffer.from(`<< /Type /Pages /Count ${references} /Kids [${"3 0 R ".repeat(references)}] >>`),
      Buffer.from("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>"),
      Buffer.from("<< /Length 0 >>\nstream\n\nendstream"),
    ],
    "",
  );
}

const ENCRYPTION = `/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${"41".repeat(32)}> /U <${"42".repeat(32)}> >> /ID [<${"43".repeat(16)}> <${"43".repeat(16)}>]`;

function assemble(objects: readonly Buffer[], trailer: string): Buffer {
  const parts: Buffer[] = [Buffer.from("%PDF-1.4\n")];
  const entries = ["0000000000 65535 f \n"];
  let offset = parts[0]?.length ?? 0;
  const add = (part: Buffer): void => {
    parts.push(part);
    offset += part.length;
  };
  for (const [i, object] of objects.entries()) {
    entries.push(`${String(offset).padStart(10, "0")} 00000 n \n`);
    add(Buffer.concat([Buffer.from(`${i + 1} 0 obj\n`), object, Buffer.from("\nendobj\n")]));
  }
  const size = objects.length + 1;
  parts.push(
    Buffer.from(
      `xref\n0 ${size}\n${entries.join("")}trailer << /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${offset}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}
