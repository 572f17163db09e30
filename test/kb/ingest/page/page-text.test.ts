import { describe, expect, it } from "vitest";
import { decodePage, looksLikePage } from "../../../../src/kb/ingest/page/page-text.ts";

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

describe("the encoding of a page", () => {
  it.each([
    ["nothing said, valid UTF-8", Buffer.from("Straße"), undefined, "Straße"],
    ["nothing said, not UTF-8", latin1("Stra\xdfe \x93x\x94"), undefined, "Straße “x”"],
    ["the server says", latin1("Stra\xdfe"), "ISO-8859-1", "Straße"],
    ["the server says in another alphabet", Buffer.from("cfee", "hex"), "windows-1251", "По"],
    ["the server says what nobody knows", Buffer.from("Straße"), "x-unknown", "Straße"],
    ["the page says", latin1('<meta charset="iso-8859-1">\xdf'), undefined, '<meta charset="iso-8859-1">ß'],
    [
      "the page says in the old way",
      latin1("<meta http-equiv=content-type content='text/html; charset=windows-1252'>\x80"),
      undefined,
      "<meta http-equiv=content-type content='text/html; charset=windows-1252'>€",
    ],
    [
      "the server goes before the page",
      latin1("<meta charset=utf-8>\xdf"),
      "latin1",
      "<meta charset=utf-8>ß",
    ],
    [
      "a page in ASCII letters is not in UTF-16",
      latin1("<meta charset=utf-16>a"),
      undefined,
      "<meta charset=utf-16>a",
    ],
    ["a mark goes before all", Buffer.from("\ufeffStraße"), "latin1", "Straße"],
    ["a mark of UTF-16", Buffer.from("\ufeffß", "utf16le"), "latin1", "ß"],
    ["what is broken stays seen", Buffer.from([0x61, 0xff]), "utf-8", "a\ufffd"],
  ])("decodes a page: %s", (_name, bytes, encoding, text) => {
    expect(decodePage(bytes, encoding)).toBe(text);
  });
});

describe("what nobody declared is a page", () => {
  it.each([
    ["a doctype", "<!DOCTYPE html>", true],
    ["an element", "<html lang=en>", true],
    ["behind spaces and a comment", " \n<!-- made by hand -->\n<HTML>", true],
    ["behind many comments", `${"<!-- a -->\n".repeat(50)}<body>`, true],
    ["many comments and no element", `${"<!---->".repeat(140)}x`, false],
    ["a comment that never ends", "<!-- <html>", false],
    ["XHTML", '<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', true],
    ["behind a byte-order mark", "\ufeff<!doctype html>", true],
    ["text that talks of it", "An <html> element", false],
    ["another element", "<htmlx>", false],
    ["XML", '<?xml version="1.0"?><feed>', false],
    ["Markdown that begins with HTML", "<p align=center>Hello</p>", false],
    ["nothing", "", false],
  ])("undeclared text is a page with %s: %s", (_name, head, is) => {
    expect(looksLikePage(Buffer.from(head))).toBe(is);
  });
});
