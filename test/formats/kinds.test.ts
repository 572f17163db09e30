import { describe, expect, it } from "vitest";
import { containerOf, isConverted, isOle, kindOfName, mediaTypeOf } from "../../src/formats/kinds.ts";

describe("kindOfName", () => {
  const cases: [name: string, kind: string][] = [
    ["a.md", "content markdown"],
    ["A.MARKDOWN", "content markdown"],
    ["a.html", "content html"],
    ["a.rst", "content rst"],
    ["a.adoc", "content asciidoc"],
    ["a.org", "content org"],
    ["LICENSE", "content plain"],
    ["Makefile", "content plain"],
    ["main.rs", "content plain"],
    ["data.csv", "content csv"],
    ["data.TSV", "content tsv"],
    ["table.txt", "content plain"],
    ["a.unknown", "content plain"],
    [".md", "content plain"],
    ["md", "content plain"],
    ["a.", "content plain"],
    ["notes.ipynb", "content notebook"],
    ["old.RTF", "content rtf"],
    ["talk.vtt", "content subtitles"],
    ["film.SRT", "content subtitles"],
    ["a.pdf", "file"],
    ["a.JPG", "file"],
    ["a.tiff", "file"],
    ["page.url", "link url"],
    ["page.webloc", "link webloc"],
    ["a.docx", "office"],
    ["a.PPTX", "office"],
    ["a.xlsm", "office"],
    ["a.odt", "office"],
    ["a.epub", "office"],
    ["a.eml", "content mail"],
    ["a.doc", "skipped"],
    ["a.xlsb", "skipped"],
    ["a.tar.gz", "skipped"],
    ["a.mp4", "skipped"],
    ["server.pem", "skipped"],
  ];
  it.each(cases)("derives from the name %s the kind %s", (name, kind) => {
    const named = kindOfName(name);
    expect("format" in named ? `${named.kind} ${named.format}` : named.kind).toBe(kind);
  });
});

describe("mediaTypeOf", () => {
  const cases: [bytes: string, mediaType: string | undefined][] = [
    ["%PDF-1.7\n", "application/pdf"],
    ["\x89PNG\r\n\x1a\n", "image/png"],
    ["\xff\xd8\xff\xe0", "image/jpeg"],
    ["GIF87a", "image/gif"],
    ["GIF89a", "image/gif"],
    ["GIF88a", undefined],
    ["RIFX\x10\0\0\0WEBP", undefined],
    ["%PDF", undefined],
    ["RIFF\x10\0\0\0WEBP", "image/webp"],
    ["RIFF\x10\0\0\0WAVE", undefined],
    ["II*\0", "image/tiff"],
    ["MM\0*", "image/tiff"],
    ["BM\x40\0\0\0\0\0\0\0", "image/bmp"],
    ["BMW is a make", undefined],
    ["AM\x40\0\0\0\0\0\0\0", undefined],
    ["", undefined],
    ["# text", undefined],
  ];
  it.each(cases)("derives from the bytes %j the media type %s", (bytes, mediaType) => {
    expect(mediaTypeOf(Buffer.from(bytes, "latin1"))).toBe(mediaType);
  });
});

const ZIP = "PK\x03\x04 and so on";
const MAIL = "From: a@example.com\nSubject: greetings\n\nHello: there";

describe("what has to be opened to get at a file's text", () => {
  it.each<[name: string, head: string, container: string | undefined]>([
    ["a.docx", ZIP, "zip"],
    ["a.txt", ZIP, "zip"],
    ["a.docx", "no archive", undefined],
    ["a.html", "<p>Hello", "html"],
    ["a.html", "\0\x01\x02\0\xff", undefined],
    ["a.md", "<p>Hello", undefined],
    ["a.eml", MAIL, "mail"],
    ["a.eml", `From someone Mon Jan 1\n${MAIL}`, "mail"],
    ["a.eml", "Received: by a\r\n\tfor b\r\nDate: today\r\n\r\nbody", "mail"],
    ["a.txt", MAIL, undefined],
    ["a.eml", "Subject: only one known line\nX-Other: yes\n\n", undefined],
    ["a.eml", "Subject: one\nFrom: two\nno header at all\n\n", undefined],
    ["a.eml", "Subject: one\nFrom: two\nthe last line was cut off", "mail"],
    ["a.eml", "just text", undefined],
    ["a.eml", `X-Long: ${"a".repeat(9000)}\n${MAIL}`, undefined],
    ["a.eml", `From: a\nSubject: b\nX-Long: ${"a".repeat(9000)}\nno header\n\n`, "mail"],
    ["a.csv", "a,b\n1,2\n", "csv"],
    ["a.csv", "\0\x01\x02\0\xff", undefined],
    ["a.tsv", "a\tb\n", "tsv"],
    ["a.vtt", "WEBVTT\n", "subtitles"],
    ["a.ipynb", "{}", "notebook"],
    ["a.rtf", "{\\rtf1 text}", "rtf"],
    ["a.rtf", "plain text", undefined],
    ["a.adoc", "= Title", undefined],
    ["a.pdf", "{\\rtf1 text}", undefined],
  ])("chooses for %s that begins with %j the container %s", (name, head, container) => {
    expect(containerOf(kindOfName(name), Buffer.from(head, "latin1"))).toBe(container);
  });
});

it.each([
  ["a.docx", true],
  ["a.html", true],
  ["a.eml", true],
  ["a.csv", true],
  ["a.tsv", true],
  ["a.srt", true],
  ["a.ipynb", true],
  ["a.rtf", true],
  ["a.txt", false],
  ["a.md", false],
  ["a.pdf", false],
  ["a.url", false],
])("decides whether the text of %s is extracted and sent as Markdown: %s", (name, converted) => {
  expect(isConverted(kindOfName(name))).toBe(converted);
});

it.each([
  ["\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", true],
  ["\xd0\xcf\x11\xe0\xa1\xb1\x1a", false],
  ["PK\x03\x04    ", false],
])("decides whether the bytes %j begin an OLE file: %s", (bytes, expected) => {
  expect(isOle(Buffer.from(bytes, "latin1"))).toBe(expected);
});
