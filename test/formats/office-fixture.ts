import { buildZip, type ZipPart } from "./zip-fixture.ts";

type Parts = Readonly<Record<string, string | Buffer | ZipPart>>;

const MAIN = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const TYPES = {
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
};

function packageOf(format: keyof typeof TYPES, main: string, parts: Parts, title?: string): Buffer {
  return buildZip({
    "[Content_Types].xml": `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/${main}" ContentType="${TYPES[format]}"/></Types>`,
    "_rels/.rels": relations([["rId1", "officeDocument", main]]),
    ...(title !== undefined && {
      "docProps/core.xml": `<cp:coreProperties xmlns:cp="x" xmlns:dc="y"><dc:title>${title}</dc:title></cp:coreProperties>`,
    }),
    ...parts,
  });
}

/** A part with the references of another: id, last word of the type, target. */
export function relations(all: readonly (readonly [string, string, string])[]): string {
  const each = all.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="${MAIN}/${type}" Target="${target}"/>`,
  );
  return `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${each.join("")}</Relationships>`;
}

/** A Word document with this body in WordprocessingML. */
export function docx(body: string, { title, parts = {} }: { title?: string; parts?: Parts } = {}): Buffer {
  const document = `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`;
  const styles = `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">${["Title", "heading 1", "heading 2"].map((name) => `<w:style w:type="paragraph" w:styleId="${name.replace(" ", "")}"><w:name w:val="${name}"/></w:style>`).join("")}</w:styles>`;
  return packageOf(
    "docx",
    "word/document.xml",
    {
      "word/document.xml": document,
      "word/styles.xml": styles,
      "word/_rels/document.xml.rels": relations([["rId1", "styles", "styles.xml"]]),
      ...parts,
    },
    title,
  );
}

/** A paragraph of a Word document, in a style. */
export function wordParagraph(text: string, style?: string): string {
  const properties = style === undefined ? "" : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`;
  return `<w:p>${properties}<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;
}

/** A presentation of these slides in PresentationML (what is in the shape tree), with notes by slide number from 1. */
export function pptx(
  slides: readonly string[],
  { title, notes = {} }: { title?: string; notes?: Readonly<Record<number, string>> } = {},
): Buffer {
  const ids = slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="rId${at + 1}"/>`).join("");
  const parts: Record<string, string> = {
    "ppt/presentation.xml": `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>${ids}</p:sldIdLst></p:presentation>`,
    "ppt/_rels/presentation.xml.rels": relations(
      slides.map((_, at) => [`rId${at + 1}`, "slide", `slides/slide${at + 1}.xml`] as const),
    ),
  };
  for (const [at, shapes] of slides.entries()) {
    parts[`ppt/slides/slide${at + 1}.xml`] =
      `<p:sld xmlns:a="a" xmlns:p="p"><p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:sld>`;
    const note = notes[at + 1];
    if (note === undefined) continue;
    parts[`ppt/slides/_rels/slide${at + 1}.xml.rels`] = relations([
      ["rId1", "notesSlide", `../notesSlides/notesSlide${at + 1}.xml`],
    ]);
    parts[`ppt/notesSlides/notesSlide${at + 1}.xml`] =
      `<p:notes xmlns:a="a" xmlns:p="p"><p:cSld><p:spTree>${shape([note], "body")}${shape(["7"], "sldNum")}</p:spTree></p:cSld></p:notes>`;
  }
  return packageOf("pptx", "ppt/presentation.xml", parts, title);
}

/** A text box or placeholder; a paragraph that begins with "- " is a bullet. */
export function shape(paragraphs: readonly string[], placeholder?: string): string {
  const kind =
    placeholder === undefined ? "" : `<p:nvSpPr><p:nvPr><p:ph type="${placeholder}"/></p:nvPr></p:nvSpPr>`;
  const text = paragraphs.map((each) => {
    const isBullet = each.startsWith("- ");
    return `<a:p>${isBullet ? '<a:pPr lvl="1"><a:buChar char="•"/></a:pPr>' : ""}<a:r><a:t>${isBullet ? each.slice(2) : each}</a:t></a:r></a:p>`;
  });
  return `<p:sp>${kind}<p:txBody>${text.join("")}</p:txBody></p:sp>`;
}

/** A workbook of named sheets; texts are inline strings, numbers are numbers. */
export function xlsx(
  sheets: Readonly<Record<string, readonly (readonly (string | number)[])[]>>,
  title?: string,
): Buffer {
  const names = Object.keys(sheets);
  const parts: Record<string, string> = {
    "xl/workbook.xml": `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="${MAIN}"><sheets>${names.map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`).join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations(
      names.map((_, at) => [`rId${at + 1}`, "worksheet", `worksheets/sheet${at + 1}.xml`] as const),
    ),
  };
  for (const [at, name] of names.entries()) {
    const rows = (sheets[name] ?? []).map((row, r) => {
      const cells = row.map((cell, c) => {
        const place = `${String.fromCharCode(65 + c)}${r + 1}`;
        return typeof cell === "number"
          ? `<c r="${place}"><v>${cell}</v></c>`
          : `<c r="${place}" t="inlineStr"><is><t>${cell}</t></is></c>`;
      });
      return `<row r="${r + 1}">${cells.join("")}</row>`;
    });
    parts[`xl/worksheets/sheet${at + 1}.xml`] =
      `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>${rows.join("")}</sheetData></worksheet>`;
  }
  return packageOf("xlsx", "xl/workbook.xml", parts, title);
}

/** An OpenDocument file: kind as in its media type, and what is in its body. */
export function openDocument(
  kind: "text" | "spreadsheet" | "presentation",
  body: string,
  { title = "", parts = {} }: { title?: string; parts?: Parts } = {},
): Buffer {
  const spaces =
    'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:xlink="x" xmlns:dc="c" xmlns:presentation="p"';
  return buildZip({
    mimetype: { bytes: `application/vnd.oasis.opendocument.${kind}`, stored: true },
    "content.xml": `<?xml version="1.0"?><office:document-content ${spaces}><office:body><office:${kind}>${body}</office:${kind}></office:body></office:document-content>`,
    "meta.xml": `<office:document-meta ${spaces}><office:meta><dc:title>${title}</dc:title></office:meta></office:document-meta>`,
    ...parts,
  });
}

/** A book of chapters in XHTML. */
export function epub(title: string, chapters: readonly string[], parts: Parts = {}): Buffer {
  const items = chapters.map(
    (_, at) => `<item id="c${at}" href="text/c%20${at}.xhtml" media-type="application/xhtml+xml"/>`,
  );
  const order = chapters.map((_, at) => `<itemref idref="c${at}"/>`);
  return buildZip({
    mimetype: { bytes: "application/epub+zip", stored: true },
    "META-INF/container.xml": `<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`,
    "OEBPS/book.opf": `<package xmlns:dc="c"><metadata><dc:title>${title}</dc:title></metadata><manifest>${items.join("")}</manifest><spine>${order.join("")}</spine></package>`,
    ...Object.fromEntries(chapters.map((text, at) => [`OEBPS/text/c ${at}.xhtml`, text])),
    ...parts,
  });
}
