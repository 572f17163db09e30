import { TextDecoder } from "node:util";
import { oneLine } from "../../lib/one-line.ts";

/** Deepest nesting of groups; word processors stay far below. */
const DEPTH_MAX = 1000;

/** Groups whose text is not part of the document: font and style tables, pictures, field instructions, page margins. */
const LEFT_OUT = new Set(
  (
    "fonttbl colortbl stylesheet info pict objdata object themedata datastore listtable listoverridetable revtbl rsidtbl " +
    "generator xmlnstbl filetbl fldinst nonshppict latentstyles bkmkstart bkmkend xe tc template private sn sv pntxta pntxtb " +
    "header headerl headerr headerf footer footerl footerr footerf"
  ).split(" "),
);

const SIGNS: Readonly<Record<string, string>> = {
  tab: "\t",
  line: "\n",
  emdash: "—",
  endash: "–",
  bullet: "•",
  lquote: "‘",
  rquote: "’",
  ldblquote: "“",
  rdblquote: "”",
  emspace: " ",
  enspace: " ",
};

/** Code pages by their TextDecoder labels; those of Windows are `windows-N`. */
const CODE_PAGES: Readonly<Record<number, string>> = {
  866: "ibm866",
  932: "shift_jis",
  936: "gbk",
  949: "euc-kr",
  950: "big5",
  10_000: "macintosh",
  65_001: "utf-8",
};
/** Code pages of the character sets of fonts (`\fcharset`). */
const CHARSET_PAGES: Readonly<Record<number, number>> = {
  77: 10_000,
  128: 932,
  129: 949,
  134: 936,
  136: 950,
  161: 1253,
  162: 1254,
  163: 1258,
  177: 1255,
  178: 1256,
  186: 1257,
  204: 1251,
  222: 874,
  238: 1250,
};

interface Group {
  readonly isLeftOut: boolean;
  /** Fallback characters behind each `\u`, for readers that do not support it. */
  readonly fallbackChars: number;
  readonly font: number;
}

/** A control word with its number, a control sign, a brace, or one character of text. */
const TOKEN = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n])/giy;

/**
 * Extracts the text of a Rich Text Format document (1.9): paragraphs separated by blank lines, table rows as lines of
 * cells. Omits pictures, instructions, headers and footers. `rtf` holds the bytes, as Latin-1 or decoded. Undefined for
 * other formats and for groups nested deeper than `DEPTH_MAX`.
 */
export function rtfText(rtf: string): string | undefined {
  if (!/^\s{0,100}\{\\rtf/.test(rtf)) return undefined;
  const written = openWriter();
  const fontPages = new Map<number, number>();
  const outer: Group[] = [];
  let group: Group = { isLeftOut: false, fallbackChars: 1, font: 0 };
  let isFontTable = false;
  let codePage = 1252;
  let skip = 0;
  let tableFont = 0;

  const word = (name: string, value: number | undefined): void => {
    if (isFontTable && name === "f") tableFont = value ?? 0;
    if (isFontTable && name === "fcharset") fontPages.set(tableFont, CHARSET_PAGES[value ?? 0] ?? 0);
    if (name === "fonttbl") isFontTable = true;
    if (LEFT_OUT.has(name)) group = { ...group, isLeftOut: true };
    else if (name === "ansicpg") codePage = value ?? codePage;
    else if (name === "uc") group = { ...group, fallbackChars: Math.min(Math.max(value ?? 1, 0), 100) };
    else if (name === "f") group = { ...group, font: value ?? 0 };
    else if (group.isLeftOut) return;
    else if (name === "u" && value !== undefined) {
      written.text(String.fromCharCode(value & 0xffff));
      skip = group.fallbackChars;
    } else written.control(name);
  };

  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(rtf); match !== null; match = TOKEN.exec(rtf)) {
    const [, name, digits, hex, sign, brace, char] = match;
    if (brace === "{") {
      if (outer.length >= DEPTH_MAX) return undefined;
      outer.push(group);
      skip = 0;
    } else if (brace === "}") {
      const before = outer.pop();
      if (before === undefined || outer.length === 0) break;
      if (group.isLeftOut && !before.isLeftOut) isFontTable = false;
      group = before;
      skip = 0;
    } else if (name === "bin") TOKEN.lastIndex += Math.max(Number(digits ?? 0), 0);
    else if (skip > 0 && (name ?? hex ?? sign ?? char) !== undefined) skip -= 1;
    else if (name !== undefined) word(name.toLowerCase(), digits === undefined ? undefined : Number(digits));
    // Ignorable destinations: none holds text of the document.
    else if (sign === "*") group = { ...group, isLeftOut: true };
    else if (group.isLeftOut) continue;
    else if (hex !== undefined) written.byte(Number.parseInt(hex, 16), fontPages.get(group.font) || codePage);
    else if (sign !== undefined) written.sign(sign);
    else if (char !== undefined) {
      const code = char.charCodeAt(0);
      if (code >= 0x80 && code <= 0xff) written.byte(code, fontPages.get(group.font) || codePage);
      else written.text(char);
    }
  }
  return written.end();
}

interface Writer {
  text(this: void, text: string): void;
  byte(this: void, byte: number, codePage: number): void;
  sign(this: void, sign: string): void;
  control(this: void, name: string): void;
  end(this: void): string;
}

function openWriter(): Writer {
  const paragraphs: string[] = [];
  let paragraph = "";
  let cells: string[] = [];
  let rows: string[] = [];
  let isInTable = false;
  let bytes: number[] = [];
  let bytesPage = 0;

  const flush = (): void => {
    if (bytes.length === 0) return;
    paragraph += decoderOf(bytesPage).decode(Uint8Array.from(bytes));
    bytes = [];
  };
  const endTable = (): void => {
    if (rows.length > 0) paragraphs.push(rows.join("\n"));
    rows = [];
  };
  const endParagraph = (): void => {
    flush();
    const clean = paragraph.replaceAll(/[ \t]+$/gm, "").trim();
    paragraph = "";
    if (clean === "") return;
    endTable();
    paragraphs.push(clean);
  };
  const endRow = (): void => {
    if (cells.some((cell) => cell !== "")) rows.push(`| ${cells.join(" | ")} |`);
    cells = [];
  };
  const text = (piece: string): void => {
    flush();
    paragraph += piece;
  };
  return {
    text,
    byte: (byte, codePage) => {
      if (codePage !== bytesPage) flush();
      bytesPage = codePage;
      bytes.push(byte);
    },
    sign: (sign) => {
      if (sign === "~") text(" ");
      else if (sign === "_") text("-");
      else if (sign === "\n" || sign === "\r") endParagraph();
      else if (sign === "\\" || sign === "{" || sign === "}") text(sign);
    },
    control: (name) => {
      const sign = SIGNS[name];
      if (sign !== undefined) text(sign);
      else if (name === "intbl") isInTable = true;
      else if (name === "pard") isInTable = false;
      else if (name === "par" && isInTable) text(" ");
      else if (name === "par" || name === "sect" || name === "page") endParagraph();
      else if (name === "cell" || name === "nestcell") {
        flush();
        cells.push(oneLine(paragraph).replaceAll("|", "\\|"));
        paragraph = "";
      } else if (name === "row" || name === "nestrow") endRow();
    },
    end: () => {
      endRow();
      endParagraph();
      endTable();
      return paragraphs.join("\n\n").toWellFormed();
    },
  };
}

const decoders = new Map<number, TextDecoder>();

function decoderOf(codePage: number): TextDecoder {
  const known = decoders.get(codePage);
  if (known !== undefined) return known;
  const decoder = new TextDecoder(CODE_PAGES[codePage] ?? windowsName(codePage));
  decoders.set(codePage, decoder);
  return decoder;
}

function windowsName(codePage: number): string {
  return codePage === 874 || (codePage >= 1250 && codePage <= 1258) ? `windows-${codePage}` : "windows-1252";
}
