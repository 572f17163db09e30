import { describe, expect, it } from "vitest";
import { kindOfName, mediaTypeOf } from "../../../src/sync/document/kinds.ts";

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
    ["data.csv", "content plain"],
    ["a.unknown", "content plain"],
    ["notes.ipynb", "content plain"],
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
  it.each(cases)("%s is %s", (name, kind) => {
    const named = kindOfName(name);
    expect("format" in named ? `${named.kind} ${named.format}` : named.kind).toBe(kind);
  });
});

describe("mediaTypeOf", () => {
  const cases: [bytes: string, mediaType: string | undefined][] = [
    ["%PDF-1.7\n", "application/pdf"],
    ["\x89PNG\r\n\x1a\n", "image/png"],
    ["\xff\xd8\xff\xe0", "image/jpeg"],
    ["GIF89a", "image/gif"],
    ["RIFF\x10\0\0\0WEBP", "image/webp"],
    ["RIFF\x10\0\0\0WAVE", undefined],
    ["II*\0", "image/tiff"],
    ["MM\0*", "image/tiff"],
    ["BM\x40\0\0\0\0\0\0\0", "image/bmp"],
    ["BMW is a make", undefined],
    ["", undefined],
    ["# text", undefined],
  ];
  it.each(cases)("%j is %s", (bytes, mediaType) => {
    expect(mediaTypeOf(Buffer.from(bytes, "latin1"))).toBe(mediaType);
  });
});
