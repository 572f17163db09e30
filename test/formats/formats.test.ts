import { hash } from "node:crypto";
import { lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestOf } from "../../src/formats/digest.ts";
import { readDocument } from "../../src/sync/scan/read/read.ts";
import type { ReadOutcome } from "../../src/sync/scan/read/outcome.ts";
import { CONVERTER_VERSION, EXTRACTOR_VERSION } from "../../src/sync/plan/versions.ts";
import { openRules } from "../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../sync/scan/tree.ts";
import { docx, epub, openDocument, pptx, relations, shape, wordParagraph, xlsx } from "./office-fixture.ts";
import { buildZip } from "./zip-fixture.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

async function read(path: string, bytes: string | Buffer, signal?: AbortSignal): Promise<ReadOutcome> {
  addFiles(root, { [path]: bytes });
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  const rules = openRules(sourceAt(root, { maxFileBytes: 100_000_000 }));
  const entry = { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
  return await readDocument(join(root, path), entry, rules, signal === undefined ? {} : { signal });
}

/** Title and text of a file that becomes content. */
async function content(path: string, bytes: string | Buffer): Promise<{ title: string; text: string }> {
  const outcome = await read(path, bytes);
  if (outcome.kind !== "document" || outcome.document.kind !== "content")
    throw new Error(`expected content, got ${JSON.stringify(outcome).slice(0, 500)}`);
  return { title: outcome.document.recipe.title, text: outcome.document.content };
}

/** The places of a converted file, by the first line of their text. */
async function locationsOf(path: string, bytes: string | Buffer): Promise<object> {
  const outcome = await read(path, bytes);
  if (outcome.kind !== "document" || outcome.document.kind !== "content") throw new Error("expected content");
  const { content: text, locations = [] } = outcome.document;
  return locations.map(({ start, ...place }) => [text.slice(start).split("\n")[0], place]);
}

async function reasonOf(path: string, bytes: string | Buffer): Promise<string> {
  const outcome = await read(path, bytes);
  return "reason" in outcome ? `${outcome.kind}: ${outcome.reason}` : JSON.stringify(outcome).slice(0, 300);
}

const WORD = docx(
  [
    wordParagraph("Title of it", "Title"),
    wordParagraph("Part one", "heading1"),
    wordParagraph("Text &amp; more."),
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Region</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Sum</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>North</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>7</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
  ].join(""),
  { title: "Own title" },
);

describe("tables of text", () => {
  it.each([
    [
      "names the columns of each row",
      "a.csv",
      "Item;Price\r\nBolt;1,5\r\nNut;2\r\n",
      "Item: Bolt; Price: 1,5\nItem: Nut; Price: 2",
    ],
    [
      "names the columns in another encoding too",
      "a.csv",
      Buffer.from("Gr\xf6\xdfe,Preis\n3,1\n4,2\n", "latin1"),
      "Größe: 3; Preis: 1\nGröße: 4; Preis: 2",
    ],
    [
      "is sent unconverted without names of columns",
      "a.tsv",
      "apple\tApfel\nbread\tBrot\nmilk\tMilch\n",
      "apple\tApfel\nbread\tBrot\nmilk\tMilch\n",
    ],
    [
      "is sent unconverted under the name of a text",
      "a.txt",
      "Item,Price\nBolt,1.5\nNut,2\n",
      "Item,Price\nBolt,1.5\nNut,2\n",
    ],
  ])("a table %s", async (_name, path, bytes, text) => {
    expect(await content(path, bytes)).toEqual({ title: path, text });
  });
});

describe("text whose name declares its structure", () => {
  const notebook = { nbformat: 4, cells: [{ cell_type: "markdown", source: "# Harvest" }] };
  it.each([
    [
      "subtitles",
      "a.vtt",
      "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>Hi\n",
      "a.vtt",
      "[00:00:01]\nAnna: Hi",
    ],
    ["subtitles that are none", "a.srt", " some text\n", "a.srt", " some text\n"],
    ["a notebook", "a.ipynb", JSON.stringify(notebook), "Harvest", "# Harvest"],
    ["RTF", "a.rtf", "{\\rtf1\\ansi Gr\\'f6\\'dfe\\par}", "a.rtf", "Größe"],
    ["RTF that is none", "a.rtf", "some text\n", "a.rtf", "some text\n"],
    ["a notebook that is none", "a.ipynb", '{"cells": []}', "a.ipynb", '{"cells": []}'],
  ])("extracts text with a declared structure: %s", async (_name, path, bytes, title, text) => {
    expect(await content(path, bytes)).toEqual({ title, text });
  });

  it("skips a file without text, with the reason", async () => {
    expect(await reasonOf("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n\n")).toBe(
      "skipped: there is no text in the subtitles",
    );
  });
});

describe("the text of a document", () => {
  it("reads DOCX: headings, paragraphs, tables, and the title of its properties", async () => {
    expect(await content("a.docx", WORD)).toEqual({
      title: "Own title",
      text: "# Title of it\n\n# Part one\n\nText & more.\n\n| Region | Sum |\n| --- | --- |\n| North | 7 |",
    });
  });

  it("reads DOCX headers and footers once each, without page numbers", async () => {
    const run = (text: string): string => `<w:r><w:t xml:space="preserve">${text}</w:t></w:r>`;
    const field = (instruction: string, result: string): string =>
      `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> ${instruction} </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>${run(result)}<w:r><w:fldChar w:fldCharType="end"/></w:r>`;
    const header = `<w:hdr><w:p>${run("Harvest report ")}<w:r><w:tab/></w:r>${field("TITLE", "of 2026")}</w:p></w:hdr>`;
    const box =
      "<mc:AlternateContent><mc:Choice><w:p><w:r><w:t>In a box</w:t></w:r></w:p></mc:Choice><mc:Fallback><w:p><w:r><w:t>In a box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>";
    const parts = {
      "word/_rels/document.xml.rels": relations([
        ["rId1", "styles", "styles.xml"],
        ["rId2", "header", "header1.xml"],
        ["rId3", "header", "header2.xml"],
        ["rId4", "footer", "footer1.xml"],
      ]),
      "word/header1.xml": header,
      "word/header2.xml": header,
      "word/footer1.xml": `<w:ftr><w:p>${run("Page ")}${field("PAGE", "1")}${run(" of ")}<w:fldSimple w:instr="NUMPAGES">${run("9")}</w:fldSimple></w:p><w:p>${run("Draft ")}</w:p><w:p><w:r>${box}</w:r></w:p></w:ftr>`,
    };
    expect((await content("a.docx", docx(wordParagraph("Body"), { parts }))).text).toBe(
      "Body\n\nHeaders and footers of the pages:\n\n- Harvest report of 2026\n- Draft\n- In a box",
    );
  });

  it("uses the first heading as the title of a DOCX without its own", async () => {
    expect(await content("a.docx", docx(wordParagraph("Part one", "heading1")))).toMatchObject({
      title: "Part one",
    });
    expect(await content("b.docx", docx(wordParagraph("x"), { title: "Document1" }))).toMatchObject({
      title: "b.docx",
    });
  });

  it("reads PPTX: slides with numbers and titles, lists, tables and notes, without repeated parts", async () => {
    const table =
      "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>A</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>B</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame>";
    const slides = [
      shape(["Welcome"], "ctrTitle") + shape(["to all"]) + shape(["3"], "sldNum"),
      shape(["Agenda"], "title") + shape(["- one", "- two"], "body") + table,
      shape(["no title here"]),
    ];
    expect(await content("t.pptx", pptx(slides, { notes: { 2: "Smile" } }))).toEqual({
      title: "Welcome",
      text: "## Slide 1: Welcome\n\nto all\n\n## Slide 2: Agenda\n\n- one\n- two\n\n| A | B |\n| --- | --- |\n\nNotes:\n\nSmile\n\n## Slide 3\n\nno title here",
    });
  });

  it("reads XLSX: each sheet as a table under its name", async () => {
    const book = xlsx({
      Prices: [
        ["Item", "Price"],
        ["Bolt | M8", 1.5],
      ],
      Empty: [],
      More: [["x"]],
    });
    expect(await content("b.xlsx", book)).toEqual({
      title: "b.xlsx",
      text: "## Prices\n\n| Item | Price |\n| --- | --- |\n| Bolt \\| M8 | 1.5 |\n\n## More\n\n| x |\n| --- |",
    });
  });

  it("names the sheet and rows of an XLSX, with the empty rows that its text omits", async () => {
    const book = xlsx({ Prices: [[], ["Item"], ["Bolt"], [], ["Nut"], ["Screw"]], " ": [["x"]] });
    expect(await locationsOf("b.xlsx", book)).toEqual([
      ["## Prices", { sheet: "Prices" }],
      ["| Item |", { sheet: "Prices", rows: { first: 2, last: 2 } }],
      ["| Bolt |", { sheet: "Prices", rows: { first: 3, last: 3 } }],
      ["| Nut |", { sheet: "Prices", rows: { first: 5, last: 6 } }],
      ["## ", {}],
      ["| x |", { rows: { first: 1, last: 1 } }],
    ]);
  });

  it("names the slides of a presentation", async () => {
    const slides = [shape(["Welcome"], "title"), shape(["no title here"])];
    expect(await locationsOf("t.pptx", pptx(slides))).toEqual([
      ["## Slide 1: Welcome", { slide: 1 }],
      ["## Slide 2", { slide: 2 }],
    ]);
    const page =
      "<draw:page><draw:frame><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame></draw:page>";
    expect(await locationsOf("t.odp", openDocument("presentation", page + page))).toEqual([
      ["## Slide 1", { slide: 1 }],
      ["## Slide 2", { slide: 2 }],
    ]);
  });

  it("names the sheet and rows of an ODS, with the empty and repeated rows", async () => {
    const row = (text: string, repeats = 1): string =>
      `<table:table-row table:number-rows-repeated="${repeats}"><table:table-cell><text:p>${text}</text:p></table:table-cell></table:table-row>`;
    const sheet = (name: string, rows: string): string =>
      `<table:table table:name="${name}">${rows}</table:table>`;
    const prices = `<table:table-header-rows>${row("", 4)}${row("Item")}</table:table-header-rows>${row("Bolt")}${row("", 1_000_000)}${row("Nut", 2)}${row("Screw")}`;
    const book = openDocument("spreadsheet", sheet("Prices", prices) + sheet("Next", row("x")));
    expect(await locationsOf("t.ods", book)).toEqual([
      ["## Prices", { sheet: "Prices" }],
      ["| Item |", { sheet: "Prices", rows: { first: 5, last: 5 } }],
      ["| Bolt |", { sheet: "Prices", rows: { first: 6, last: 6 } }],
      ["| Nut |", { sheet: "Prices", rows: { first: 1_000_007, last: 1_000_009 } }],
      ["## Next", { sheet: "Next" }],
      ["| x |", { sheet: "Next", rows: { first: 1, last: 1 } }],
    ]);
  });

  it("reports omitted rows of a long ODS", async () => {
    const row =
      '<table:table-row table:number-rows-repeated="100"><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row>';
    const sheet = `<table:table table:name="Long">${row.repeat(1001)}</table:table>`;
    const { text } = await content("b.ods", openDocument("spreadsheet", sheet));
    expect(text.endsWith("| a |\n\n(More rows of the sheet Long are left out.)")).toBe(true);
  });

  it("names the rows of a table of text", async () => {
    expect(await locationsOf("t.csv", "Item,Price\nBolt,1\n\nNut,2\n")).toEqual([
      ["Item: Bolt; Price: 1", { rows: { first: 2, last: 2 } }],
      ["Item: Nut; Price: 2", { rows: { first: 4, last: 4 } }],
    ]);
  });

  it("reports omitted rows of a long XLSX", async () => {
    const rows = Array.from({ length: 100_050 }, (_, at) => [at]);
    const { text } = await content("b.xlsx", xlsx({ Long: rows, Next: [["y"]] }));
    expect(text).toContain("| 99999 |\n\n(50 more rows of the sheet Long are left out.)");
    expect(text).toContain("(1 more rows of the sheet Next are left out.)");
  });

  it("reads ODT: headings, lists, tables, inline notes, links", async () => {
    const body =
      '<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:outline-level="2">Head</text:h><text:p>Some<text:s/>text<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>a note</text:p></text:note-body></text:note> and <text:a xlink:href="https://example.org/x">a link</text:a>.</text:p><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>below</text:p></text:list-item></text:list></text:list-item></text:list><table:table table:name="Table1"><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell><text:p>B</text:p></table:table-cell></table:table-row></table:table>';
    expect(await content("a.odt", openDocument("text", body, { title: "Given" }))).toEqual({
      title: "Given",
      text: "## Head\n\nSome text (a note) and [a link](https://example.org/x).\n\n- one\n  - below\n\n| A | B |\n| --- | --- |",
    });
  });

  it("reads an ODT table inside a table only once", async () => {
    const table = (inner: string): string =>
      `<table:table table:name="Table1"><table:table-row><table:table-cell>${inner}</table:table-cell></table:table-row></table:table>`;
    const nested = Array.from({ length: 30 }).reduce<string>(table, "<text:p>deep</text:p>");
    expect((await content("a.odt", openDocument("text", nested))).text).toBe("deep");
    const head = `<table:table table:name="Table1"><table:table-header-rows><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell><text:p>B</text:p></table:table-cell></table:table-row></table:table-header-rows><table:table-row><table:table-cell><text:p>1</text:p></table:table-cell><table:table-cell><text:p>2</text:p></table:table-cell></table:table-row></table:table>`;
    expect((await content("b.odt", openDocument("text", head))).text).toBe(
      "| A | B |\n| --- | --- |\n| 1 | 2 |",
    );
  });

  it("reads ODS and ODP: sheets and slides, without cost for a million empty rows", async () => {
    const cell = (text: string, more = ""): string =>
      `<table:table-cell ${more}><text:p>${text}</text:p></table:table-cell>`;
    const sheet = `<table:table table:name="Sum"><table:table-row>${cell("a")}${cell("b", 'table:number-columns-repeated="2"')}</table:table-row><table:table-row table:number-rows-repeated="1048000">${cell("", 'table:number-columns-repeated="16000"')}</table:table-row></table:table>`;
    expect((await content("a.ods", openDocument("spreadsheet", sheet))).text).toBe(
      "## Sum\n\n| a | b | b |\n| --- | --- | --- |",
    );
    const page =
      "<draw:page><draw:frame><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame></draw:page>";
    expect((await content("a.odp", openDocument("presentation", page + page))).text).toBe(
      "## Slide 1\n\nHello\n\n## Slide 2\n\nHello",
    );
  });

  it("reads the notes of ODP slides", async () => {
    const page = (notes: string): string =>
      `<draw:page><draw:frame><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box>${notes}</draw:text-box></draw:frame></presentation:notes></draw:page>`;
    const both = page("<text:p>Say it</text:p><text:p>twice</text:p>") + page("<text:p> </text:p>");
    expect((await content("a.odp", openDocument("presentation", both))).text).toBe(
      "## Slide 1\n\nHello\n\nNotes:\n\nSay it\n\ntwice\n\n## Slide 2\n\nHello",
    );
  });

  it("reads EPUB chapters in reading order", async () => {
    const book = epub("The Book", [
      "<html><body><h1>One</h1><p>First &eacute;.</p></body></html>",
      "<html><head><title>Two</title></head><body><p>Second.</p></body></html>",
    ]);
    expect(await content("b.epub", book)).toEqual({
      title: "The Book",
      text: "# One\n\nFirst é.\n\n## Two\n\nSecond.",
    });
  });

  it("reads EML: subject, people, date, body, names of attachments", async () => {
    const mail = [
      "From: =?utf-8?q?J=C3=B6rg?= <j@example.org>",
      "To: a@example.org, B <b@example.org>",
      "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
      "Date: Mon, 02 Mar 2026 10:00:00 +0100",
      'Content-Type: multipart/mixed; boundary="x"',
      "",
      "--x",
      "Content-Type: text/html; charset=utf-8",
      "",
      "<p>Hello <b>you</b></p>",
      "--x",
      'Content-Type: application/pdf; name="bill.pdf"',
      'Content-Disposition: attachment; filename="bill.pdf"',
      "",
      "%PDF",
      "--x--",
    ].join("\r\n");
    expect(await content("m.eml", mail)).toEqual({
      title: "Grüße",
      text: "# Grüße\n\n- From: Jörg <j@example.org>\n- To: a@example.org, B <b@example.org>\n- Date: 2026-03-02T09:00:00.000Z\n\nHello **you**\n\nAttachments:\n- bill.pdf (application/pdf), not read: PDFs and images are read as files of their own: save it beside the mail",
    });
  });

  /** A mail with these attachments, each with its type. */
  const mailOf = (attachments: readonly (readonly [name: string, type: string, bytes: Buffer])[]): Buffer => {
    const head = 'From: a@example.org\r\nSubject: Files\r\nContent-Type: multipart/mixed; boundary="';
    // Mails in mails need boundaries of their own.
    const boundary = `b${attachments.reduce((sum, [, , { length }]) => sum + length, 0)}`;
    const parts = attachments.map(
      ([name, type, bytes]) =>
        `--${boundary}\r\nContent-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\n${type === "message/rfc822" ? `\r\n${bytes.toString("latin1")}` : `Content-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}`}\r\n`,
    );
    return Buffer.from(`${head}${boundary}"\r\n\r\n${parts.join("")}--${boundary}--\r\n`, "latin1");
  };

  it("reads EML attachments under their names, with the reason for each unread one", async () => {
    const inner = mailOf([["deep.txt", "text/plain", Buffer.from("Deep words")]]);
    const { text } = await content(
      "m.eml",
      mailOf([
        ["a.docx", "application/octet-stream", docx(wordParagraph("Body of it"))],
        ["b.csv", "text/csv", Buffer.from("Item;Price\r\nBolt;1,5\r\nNut;2\r\n")],
        ["old.doc", "application/msword", Buffer.from("x")],
        ["broken.xlsx", "application/octet-stream", xlsx({ A: [["y"]] }).subarray(0, 300)],
        ["things.bin", "application/octet-stream", Buffer.from([0, 1, 2])],
        ["inner.eml", "message/rfc822", inner],
      ]),
    );
    expect(text).toBe(
      [
        "# Files",
        "- From: a@example.org",
        "Attachments:\n- a.docx (application/octet-stream)\n- b.csv (text/csv)\n- old.doc (application/msword), not read: .doc is an office document of a format that is not read: no text is taken from it\n- broken.xlsx (application/octet-stream), not read: it is damaged: its archive cannot be unpacked\n- things.bin (application/octet-stream), not read: .bin is a program: no text is taken from it\n- inner.eml (message/rfc822)",
        "## Attachment: a.docx\n\nBody of it",
        "## Attachment: b.csv\n\nItem: Bolt; Price: 1,5\nItem: Nut; Price: 2",
        "## Attachment: inner.eml\n\n# Files\n\n- From: a@example.org\n\nAttachments:\n- deep.txt (text/plain)\n\n## Attachment: deep.txt\n\nDeep words",
      ].join("\n\n"),
    );
  });

  it("names the parts of an EML, and the sheets and rows of its attachments", async () => {
    const inner = mailOf([["deep.txt", "text/plain", Buffer.from("\n  Deep words")]]);
    const mail = mailOf([
      ["sales.xlsx", "application/octet-stream", xlsx({ Q1: [["Item"], ["Bolt"]] })],
      ["inner.eml", "message/rfc822", inner],
    ]);
    const rows = { part: "sales.xlsx", sheet: "Q1" };
    expect(await locationsOf("m.eml", mail)).toMatchObject([
      [expect.any(String), { part: "message" }],
      ["Attachments:", { part: "message" }],
      ["## Attachment: sales.xlsx", { part: "sales.xlsx" }],
      ["## Q1", rows],
      ["| Item |", { ...rows, rows: { first: 1, last: 1 } }],
      ["| Bolt |", { ...rows, rows: { first: 2, last: 2 } }],
      ["## Attachment: inner.eml", { part: "inner.eml" }],
      [expect.any(String), { part: "inner.eml" }],
      ["Attachments:", { part: "inner.eml" }],
      ["## Attachment: deep.txt", { part: "inner.eml/deep.txt" }],
      ["Deep words", { part: "inner.eml/deep.txt" }],
    ]);
  });

  it("reads nested mails and many attachments of an EML up to a bound, and lists the rest", async () => {
    let nested = mailOf([["deepest.txt", "text/plain", Buffer.from("Deepest words")]]);
    for (let depth = 0; depth < 4; depth++)
      nested = mailOf([[`m${depth}.eml`, "application/octet-stream", nested]]);
    const deep = (await content("deep.eml", nested)).text;
    expect(deep).toContain(
      "- m0.eml (application/octet-stream), not read: it lies in a mail in a mail in a mail",
    );
    expect(deep).not.toContain("Deepest");

    const many = Array.from(
      { length: 150 },
      (_, at) => [`${at}.txt`, "text/plain", Buffer.from(`n${at}`)] as const,
    );
    const { text } = await content("many.eml", mailOf(many));
    expect(text).toContain("## Attachment: 19.txt");
    expect(text).not.toContain("## Attachment: 20.txt");
    expect(text).toContain("- and 50 more, not read");
  });

  it("reads the readable part of HTML in the encoding that the page declares", async () => {
    const page = Buffer.from(
      `<!doctype html><meta charset=iso-8859-2><title>P\xf8\xedklad</title><nav><a href=/>Home</a></nav><main><h1>Head</h1><p>\xb9koda</p></main><footer>imprint</footer>`,
      "latin1",
    );
    expect(await content("p.html", page)).toEqual({ title: "Příklad", text: "# Head\n\nškoda" });
  });
});

describe("the bytes decide", () => {
  it.each([
    ["a document without an ending", "notes", WORD, "document"],
    ["a document under the name of an image", "a.png", WORD, "document"],
    ["a document under the name of another", "a.xlsx", WORD, "document"],
    ["text named eml", "a.eml", "just text: no header\n\nno", "document"],
    ["an archive without an ending", "things", buildZip({ "a.txt": "x" }), "skipped: a zip archive"],
    ["an archive named docx", "a.docx", buildZip({ "a.txt": "x" }), "refused: its name says office document"],
    ["an archive named png", "a.png", buildZip({ "a.txt": "x" }), "refused: its name says PDF or image"],
    [
      "text named docx",
      "a.docx",
      "text",
      "refused: its name says office document or book, but its bytes are none",
    ],
    [
      "an old format",
      "a.docx",
      Buffer.from("d0cf11e0a1b11ae10000", "hex"),
      "refused: it is protected by a password, or",
    ],
    ["nothing", "a.docx", "", "skipped: the file is empty"],
  ])("decides by the bytes: %s", async (_name, path, bytes, expected) => {
    const outcome = await read(path, bytes);
    expect("reason" in outcome ? `${outcome.kind}: ${outcome.reason}` : outcome.kind).toContain(expected);
  });

  it("sends text named eml unchanged, and an unfinished page without tags too", async () => {
    expect((await content("a.eml", "just: text\n\n  as it is\n")).text).toBe("just: text\n\n  as it is\n");
  });

  it("hashes the file and digests the text, with the converter's version for converted files only", async () => {
    const outcome = await read("a.docx", WORD);
    expect(outcome).toMatchObject({
      kind: "document",
      document: {
        hash: hash("sha256", WORD),
        sizeBytes: WORD.length,
        recipe: { kind: "content", extractorVersion: CONVERTER_VERSION },
      },
    });
    expect(outcome).toMatchObject({ document: { digest: digestOf((await content("a.docx", WORD)).text) } });
    expect(await read("a.md", "# x")).toMatchObject({
      document: { recipe: { extractorVersion: EXTRACTOR_VERSION } },
    });
    expect(CONVERTER_VERSION).not.toBe(EXTRACTOR_VERSION);
  });

  it("streams a large file and reads it in the child process", async () => {
    const large = docx(wordParagraph("of a large one"), {
      parts: { "word/media/image1.png": { bytes: Buffer.alloc(3_000_000, 7), stored: true } },
    });
    expect(large.length).toBeGreaterThan(2_000_000);
    expect((await content("a.docx", large)).text).toBe("of a large one");
  });
});

describe("what cannot be read is refused in words", () => {
  const bomb = (size: number): Buffer => Buffer.alloc(size, 0x20);

  it.each([
    ["a part that unpacks without end", { "word/document.xml": bomb(200_000_000) }, "unpacks to 200000000"],
    [
      "a part packed to a five-hundredth",
      { "word/document.xml": bomb(40_000_000) },
      "no document that people made",
    ],
    ["a protected part", { "word/document.xml": { bytes: "x", encrypted: true } }, "protected by a password"],
    [
      "a part that is longer than it says",
      { "word/document.xml": { bytes: bomb(9_000_000), says: 10 } },
      "cannot be read",
    ],
  ])("refuses a document in words: %s", async (_name, parts, words) => {
    const started = process.memoryUsage.rss();
    expect(await reasonOf("a.docx", docx("", { parts }))).toMatch(new RegExp(`^refused: .*${words}`));
    expect(process.memoryUsage.rss() - started).toBeLessThan(300 * 1024 * 1024);
  });

  it("refuses a document with too many parts", async () => {
    const parts = Object.fromEntries(Array.from({ length: 20_001 }, (_, at) => [`p${at}`, ""]));
    expect(await reasonOf("a.docx", buildZip(parts))).toContain(
      "refused: its text cannot be read: it holds 20001 parts",
    );
  });

  it.each([
    ["cut off", WORD.subarray(0, WORD.length / 2)],
    ["a mark and nothing else", Buffer.from("PK\x03\x04", "latin1")],
    ["no XML in it", docx("", { parts: { "word/document.xml": "<w:document" } })],
    [
      "not deflated",
      buildZip({
        "[Content_Types].xml": { bytes: deflateRawSync("x").subarray(0, 1), stored: true, says: 99 },
      }),
    ],
  ])("refuses a damaged document: %s", async (_name, bytes) => {
    expect(await reasonOf("a.docx", bytes)).toMatch(/^(?:refused: its |skipped: there is no text)/);
  });

  it("refuses an OpenDocument file without a body", async () => {
    const parts = { "content.xml": '<office:document-content xmlns:office="o"/>' };
    expect(await reasonOf("a.odt", openDocument("text", "", { parts }))).toContain("it has no body");
  });

  it("refuses an ODT with a password and a book with copy protection", async () => {
    const encryption = { "META-INF/manifest.xml": "<m:encryption-data/>" };
    expect(await reasonOf("a.odt", openDocument("text", "", { parts: encryption }))).toContain(
      "protected by a password",
    );
    const drm = { "META-INF/encryption.xml": '<enc:CipherReference URI="OEBPS/text/c%200.xhtml"/>' };
    expect(await reasonOf("b.epub", epub("B", ["x"], drm))).toContain("copy protection");
  });

  it("refuses a document with excessive nesting", async () => {
    expect(await reasonOf("a.html", "<div>".repeat(200_000))).toContain(
      "more than 10000 elements in each other",
    );
    const deep = "<text:section>".repeat(200_000);
    expect(await reasonOf("a.odt", openDocument("text", deep))).toContain(
      "more than 10000 elements in each other",
    );
  });

  it("skips documents without text, and explains pages that scripts would fill", async () => {
    expect(await reasonOf("a.docx", docx(""))).toBe("skipped: there is no text in the document");
    expect(await reasonOf("a.html", "<div id=app></div><script>make()</script>")).toBe(
      "skipped: there is no text in the page: scripts may make it, and none are run",
    );
  });

  it("reads the next document after a failed one", async () => {
    expect(await reasonOf("a.docx", WORD.subarray(0, 200))).toContain("refused");
    expect((await content("b.docx", WORD)).title).toBe("Own title");
  });

  it("does not expand an entity that a document declares", async () => {
    const laughs = `<!DOCTYPE x [<!ENTITY a "${"ha".repeat(1000)}"><!ENTITY b "${"&a;".repeat(1000)}">]>`;
    const parts = { "content.xml": `${laughs}<o><office:body><text:p>&b; word</text:p></office:body></o>` };
    const { text } = await content("a.odt", openDocument("text", "", { parts }));
    expect(text.length).toBeLessThan(100);
    expect(text).toContain("word");
  });
});

describe("while a document is read", () => {
  it("detects a change of the file during conversion", async () => {
    addFiles(root, { "a.docx": WORD });
    const path = join(root, "a.docx");
    const { size, mtimeMs, ctimeMs, ino } = lstatSync(path);
    const entry = { path: "a.docx", sizeBytes: size, mtimeMs, ctimeMs, ino };
    const reading = readDocument(path, entry, openRules(sourceAt(root)), {});
    // The bytes are hashed in the next turn of the loop; the child process finds others.
    await nextTurn();
    writeFileSync(path, docx(wordParagraph("newer")));
    expect(await reading).toEqual({ kind: "torn" });
    expect(readFileSync(path).length).not.toBe(WORD.length);
  });

  it("ends a conversion with the signal's reason", async () => {
    const stop = new AbortController();
    const reading = read("a.docx", WORD, stop.signal);
    stop.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
  });

  it("does not block the event loop during a conversion", async () => {
    const rows = Array.from({ length: 60_000 }, (_, at) => [at, `row ${at}`]);
    const book = xlsx({ Big: rows });
    // Counts work of this thread only, whatever else the machine does: converting here would take seconds of it.
    const before = process.threadCpuUsage();
    await content("b.xlsx", book);
    const spent = process.threadCpuUsage(before);
    expect(spent.user + spent.system).toBeLessThan(1_000_000);
  });
});
