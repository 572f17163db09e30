import { describe, expect, it } from "vitest";
import { rtfText } from "../../../src/formats/markup/rtf.ts";

describe("RTF", () => {
  it.each([
    [
      "paragraphs and signs, without fonts, styles, pictures and fields' instructions",
      String.raw`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\stylesheet{Normal;}}{\*\generator Riched}{\info{\title T}}\f0 Gr\'f6\'dfe \b bold\b0  \{x\}\par See {\field{\*\fldinst{HYPERLINK "http://x"}}{\fldrslt{the page}}}\emdash ok\line next{\pict\pngblip 89504e47}\par}`,
      "Größe bold {x}\n\nSee the page—ok\nnext",
    ],
    [
      "characters by number, without what stands for them in older readers",
      String.raw`{\rtf1\uc1\u1055?\u1088\'3f {\uc2\u8364 EU}\uc0\u233 !\u-10179 \u-8704 }`,
      "Пр €é!😀",
    ],
    [
      "code pages of fonts",
      String.raw`{\rtf1\ansicpg1252{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}\f0\'e9 \f1\'cf\'f0 {\f2\'93\'fa}\'ef}`,
      "é Пр 日п",
    ],
    [
      "rows of tables as lines of cells",
      String.raw`{\rtf1 Before\par\trowd\intbl A\cell\intbl b\par c\cell\row\trowd\intbl 1\cell\intbl 2\cell\row\trowd\intbl 3\cell\intbl\cell\row\pard After\par}`,
      "Before\n\n| A | b c |\n| 1 | 2 |\n| 3 |  |\n\nAfter",
    ],
    ["binary data is passed over", String.raw`{\rtf1 a{\pict\bin5 }}}}}}b}`, "ab"],
    ["raw bytes count in the document's code page", "{\\rtf1\\ansicpg1250 P\u00f8\u00edklad}", "Příklad"],
  ])("gives its text: %s", (_name, rtf, text) => {
    expect(rtfText(rtf)).toBe(text);
  });

  it.each(["", "text", String.raw`{\bold x}`, `{\\rtf1${"{".repeat(2000)}`])("RTF is not %.20j", (text) => {
    expect(rtfText(text)).toBeUndefined();
  });

  it("hostile RTF takes time linear in its length", () => {
    const before = process.cpuUsage();
    for (const piece of ["\\'e9", "\\u1 ", "a", " ", "\\cell ", "\\par ", "{}", "\\", "\\bin0 ", "| "])
      rtfText(`{\\rtf1 ${piece.repeat(400_000 / piece.length)}`);
    // Quadratic time would take minutes.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(10_000);
  });
});
