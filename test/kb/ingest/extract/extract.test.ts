import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDeflate, deflateSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openExtractor } from "../../../../src/kb/ingest/extract/extract.ts";
import type { TextForm } from "../../../../src/kb/ingest/extract/text-form.ts";
import type { Extraction, Extractor, ExtractorOptions } from "../../../../src/kb/ingest/extract/extract.ts";
import { detectMediaType, MEDIA_TYPES } from "../../../../src/kb/ingest/extract/media-type.ts";
import { buildPdf, namedFontPdf, textPage } from "./pdf-fixture.ts";
import { WAIT } from "../../../wait.ts";

const repoRoot = join(import.meta.dirname, "../../../..");
const samples = join(repoRoot, "..", "shared", "data", "pdfs");
const linux = process.platform === "linux";

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-extract-"));
});
afterAll(() => rm(folder, { recursive: true }));

const opened: Extractor[] = [];
function open(options: ExtractorOptions = {}): Extractor {
  const extractor = openExtractor(options);
  opened.push(extractor);
  return extractor;
}
const closeOpened = (): void => {
  for (const extractor of opened.splice(0)) extractor.close();
};
afterEach(closeOpened);
/** For tests that count processes: waits until those of the previous test are gone. */
const closeAndWait = async (): Promise<void> => {
  closeOpened();
  await untilProcesses(0);
};

async function write(bytes: Uint8Array | string): Promise<string> {
  const path = join(folder, `file ${files++}`); // every path contains a blank
  await writeFile(path, bytes);
  return path;
}

async function extractPdf(bytes: Uint8Array, extractor = open(), signal?: AbortSignal): Promise<Extraction> {
  const [path, mediaType] = [await write(bytes), "application/pdf" as const];
  return await extractor.extractText({ path, mediaType, requester: { lane: "backlog", signal } });
}

/** Process ids of the children of this process that read PDFs. */
function pdfProcesses(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        return (
          Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("pdf-child")
        );
      } catch {
        return false; // the process has ended
      }
    });
}

/** Waits for this many processes; on systems other than Linux returns at once. */
async function untilProcesses(count: number): Promise<void> {
  await vi.waitUntil(() => !linux || pdfProcesses().length === count, WAIT);
}

/** A document that takes seconds: a page that shows a word two million times. */
function slowPdf(): Buffer {
  const words = Buffer.from("(word) Tj 0 -14 Td ".repeat(2_000_000));
  const bytes = deflateSync(
    Buffer.concat([Buffer.from("BT /F1 12 Tf 72 700 Td "), words, Buffer.from("ET")]),
    { level: 1 },
  );
  return buildPdf([{ bytes, filter: "/Filter /FlateDecode" }]);
}

describe("text files", () => {
  it.each<[string, Uint8Array, string]>([
    ["UTF-8", Buffer.from("é 日\r\n"), "é 日\r\n"],
    ["UTF-8 with a mark", Buffer.from("\ufeffhello"), "hello"],
    ["UTF-16 LE", Buffer.from("\ufeffhello", "utf16le"), "hello"],
    ["UTF-16 BE", Buffer.from("\ufeffhello", "utf16le").swap16(), "hello"],
  ])("decodes a text file in %s", async (_name, bytes, text) => {
    expect(await open().extractText({ path: await write(bytes), mediaType: "text/plain" })).toEqual({ text });
  });

  it("refuses a text file longer than the limit", async () => {
    const path = await write("x".repeat(101));
    const file = { path, mediaType: "text/plain" } as const;
    await expect(open({ charsMax: 100 }).extractText(file)).rejects.toMatchObject({ code: "text_too_large" });
    await expect(open({ charsMax: 101 }).extractText(file)).resolves.toMatchObject({ text: "x".repeat(101) });
  });

  it("refuses a text file that contains no text", async () => {
    const path = await write(Buffer.from([0x61, 0xff]));
    await expect(open().extractText({ path, mediaType: "text/plain" })).rejects.toMatchObject({
      code: "unsupported_media_type",
    });
  });
});

describe("images where no text is recognised", () => {
  it.each(MEDIA_TYPES.filter((type) => type.startsWith("image/")))(
    "refuses a file declared as %s that is no image",
    async (mediaType) => {
      const path = await write("x");
      await expect(open({ ocr: { pagesMax: 0 } }).extractText({ path, mediaType })).rejects.toMatchObject({
        code: "image_without_text",
        hint: expect.stringContaining("OCR") as string,
      });
    },
  );
});

describe("data and pages", () => {
  const textOf = async (text: string, form: TextForm = "undeclared"): Promise<string> =>
    (await open().extractText({ path: await write(text), mediaType: "text/plain", form })).text;

  it("extracts the readable part of an HTML page, unless it is declared as written", async () => {
    const page =
      "<!doctype html><title>T</title><nav><a href=/>Home</a></nav><main><h1>Tides</h1><p>The sea.</p></main>";
    expect(await textOf(page)).toBe("# Tides\n\nThe sea.");
    expect(await textOf(page, "page")).toBe("# Tides\n\nThe sea.");
    expect(await textOf(page, "as-written")).toBe(page);
    await expect(textOf("<html><script>make()</script></html>")).rejects.toMatchObject({
      code: "page_without_text",
    });
  });

  it("leaves a text unchanged that only mentions HTML", async () => {
    expect(await textOf("To begin: <html> and so on")).toBe("To begin: <html> and so on");
  });

  it("adds column names to each row of a declared table", async () => {
    expect(await textOf("Item,Price\r\nBolt,1.5\r\nNut,2\r\n", "csv")).toBe(
      "Item: Bolt; Price: 1.5\nItem: Nut; Price: 2",
    );
  });

  it("splits one-line JSON into lines", async () => {
    const long = JSON.stringify({ a: "x".repeat(600), b: [1] });
    expect(await textOf(long)).toBe(`{\n  "a": "${"x".repeat(600)}",\n  "b": [1]\n}`);
  });
});

describe("PDFs", () => {
  // What is recognised in pictures of text is tested beside this.
  const shared = openExtractor({ charsMax: 100, ocr: { pagesMax: 0 } });
  afterAll(async () => {
    shared.close();
    await untilProcesses(0);
  });

  it("extracts lines, paragraphs and pages of a PDF", async () => {
    const pdf = buildPdf([
      textPage(["Title", "", "", "First line,", "second (line)."]),
      textPage(["Next page"]),
    ]);
    expect(await extractPdf(pdf, shared)).toEqual({
      text: "Title\n\nFirst line,\nsecond (line).\n\nNext page",
      locations: pagesAt([0, 35]),
      fileMetadata: { pages: 2 },
    });
  });

  it("counts pages of a PDF without text, which add nothing and begin nowhere", async () => {
    const pdf = buildPdf([textPage([]), textPage(["text"]), textPage([])]);
    expect(await extractPdf(pdf, shared)).toEqual({
      text: "text",
      locations: pagesAt([null, 0, null]),
      fileMetadata: { pages: 3 },
    });
  });

  it.each<[string, Buffer, string, RegExp]>([
    ["no text", buildPdf([textPage([]), textPage([])]), "pdf_without_text", /no text on its 2 pages/],
    ["a password", buildPdf([textPage(["secret"])], { isEncrypted: true }), "encrypted_pdf", /password/],
    ["nothing after the signature", Buffer.from("%PDF-1.7\n%%EOF\n"), "damaged_pdf", /damaged/],
    [
      "random bytes",
      Buffer.from(`%PDF-1.4\n${"\u0001\u009f".repeat(5000)}`, "latin1"),
      "damaged_pdf",
      /damaged/,
    ],
    [
      "more text than allowed",
      buildPdf([textPage(["x".repeat(60)]), textPage(["y".repeat(60)])]),
      "text_too_large",
      /100 characters/,
    ],
  ])("refuses a PDF with %s with a code and a hint", async (_name, pdf, code, message) => {
    const refused = extractPdf(pdf, shared);
    await expect(refused).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
      hint: expect.stringMatching(/./) as string,
      retryable: false,
    });
    await expect(refused).rejects.not.toThrow(folder); // a message goes to clients: no path in it
  });

  it("reads a PDF with as much text as allowed, and refuses one more character", async () => {
    const most = "i".repeat(100); // fits on a line
    expect(await extractPdf(buildPdf([textPage([most])]), shared)).toMatchObject({ text: most });
    const refused = extractPdf(buildPdf([textPage([`${most}i`])]), shared);
    await expect(refused).rejects.toMatchObject({ code: "text_too_large" });
  });

  it("reads a PDF whose object table is misplaced", async () => {
    const whole = buildPdf([textPage(["still here"])]).toString("latin1");
    const pdf = Buffer.from(whole.replace(/startxref\n\d+/, "startxref\n7"), "latin1");
    expect(await extractPdf(pdf, shared)).toMatchObject({ text: "still here" });
  });

  it.each([
    ["90ms-RKSJ-H", "Japan1", "93fa967b8cea", "日本語"],
    ["UniGB-UCS2-H", "GB1", "4e2d65876587672c", "中文文本"],
    ["UniKS-UCS2-H", "Korea1", "d55cad6dc5b4", "한국어"],
  ])(
    "reads a PDF in a font that refers to a predefined character map (%s)",
    async (cmap, ordering, hex, text) => {
      expect(await extractPdf(namedFontPdf(cmap, ordering, hex), shared)).toMatchObject({ text });
    },
  );

  it("does not report a vanished PDF as damaged", async () => {
    const path = join(folder, "gone");
    await expect(shared.extractText({ path, mediaType: "application/pdf" })).rejects.toMatchObject({
      code: "extraction_failed",
    });
  });
});

describe("hostile PDFs", () => {
  afterEach(closeAndWait);

  it.runIf(linux)("hostile PDFs cannot take more memory than the limit, here or in the child", async () => {
    const bomb = await write(
      buildPdf([{ bytes: await deflatedSpaces(400), filter: "/Filter /FlateDecode" }]),
    );
    const before = process.memoryUsage.rss();
    const refused = open({ memoryMb: 200 }).extractText({ path: bomb, mediaType: "application/pdf" });
    await expect(refused).rejects.toMatchObject({ code: "extraction_memory" });
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
  });

  it.runIf(linux)("gives up a hostile PDF at the time limit and ends its process", async () => {
    const refused = extractPdf(slowPdf(), open({ cpuMs: 300 }));
    await expect(refused).rejects.toMatchObject({ code: "extraction_timeout" });
    await untilProcesses(0);
  });

  it("reads the next document after a hostile PDF", async () => {
    const extractor = open({ processes: 1 });
    const refused = extractPdf(Buffer.from("%PDF-1.7"), extractor);
    const next = extractPdf(buildPdf([textPage(["fine"])]), extractor);
    await expect(refused).rejects.toMatchObject({ code: "damaged_pdf" });
    expect(await next).toMatchObject({ text: "fine" });
  });

  it("aborts a PDF by the caller's signal", async () => {
    const stop = new AbortController();
    const extractor = open({ processes: 1 });
    const running = extractPdf(slowPdf(), extractor, stop.signal);
    const waiting = extractPdf(buildPdf([textPage(["x"])]), extractor, stop.signal);
    const other = extractPdf(buildPdf([textPage(["goes on"])]), extractor);
    await untilProcesses(1);
    stop.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    await expect(waiting).rejects.toThrow("enough");
    expect(await other).toMatchObject({ text: "goes on" });
  });
});

describe.runIf(linux)("the child processes", () => {
  afterEach(closeAndWait);

  it("starts a process with the first PDF, reuses it, and ends it when idle", async () => {
    const extractor = open({ processes: 1, idleMs: 200 });
    expect(pdfProcesses()).toEqual([]);
    await extractPdf(buildPdf([textPage(["one"])]), extractor);
    const first = pdfProcesses();
    await extractPdf(buildPdf([textPage(["two"])]), extractor);
    expect(first).toHaveLength(1);
    expect(pdfProcesses()).toEqual(first);
    await untilProcesses(0);
  });

  it("starts no more processes than allowed", async () => {
    const extractor = open({ processes: 2 });
    const documents = Array.from({ length: 6 }, (_, i) =>
      extractPdf(buildPdf([textPage([`number ${i}`])]), extractor),
    );
    let most = 0;
    for (const document of documents) {
      await document;
      most = Math.max(most, pdfProcesses().length);
    }
    expect(most).toBe(2);
    expect((await Promise.all(documents)).map(({ text }) => text)).toEqual(
      documents.map((_, i) => `number ${i}`),
    );
  });

  it("closing the extractor ends its processes and the document in flight", async () => {
    const extractor = open();
    const running = extractPdf(slowPdf(), extractor);
    await untilProcesses(1);
    extractor.close();
    await expect(running).rejects.toMatchObject({ code: "closed" });
    await expect(extractPdf(buildPdf([textPage(["x"])]), extractor)).rejects.toMatchObject({
      code: "closed",
    });
    await untilProcesses(0);
  });

  it("processes see no environment and cannot write", async () => {
    const extractor = open();
    await extractPdf(buildPdf([textPage(["x"])]), extractor);
    const [pid] = pdfProcesses();
    const environment = (await readFile(`/proc/${pid}/environ`, "utf8"))
      .split("\0")
      .map((entry) => entry.split("=")[0]);
    expect(environment).not.toContain("PATH");
    const limits = await readFile(`/proc/${pid}/limits`, "utf8");
    expect(limits).toMatch(/^Max data size +\d+ +\d+ /m);
    expect(limits).toMatch(/^Max cpu time +\d+ +\d+ /m);
    expect(await readFile(`/proc/${pid}/cmdline`, "utf8")).toContain("--permission");
  });

  it("idle processes do not keep the program alive", async () => {
    const path = await write(buildPdf([textPage(["hello"])]));
    const module = join(repoRoot, "src/kb/ingest/extract/extract.ts");
    const script = `
      import { openExtractor } from ${JSON.stringify(module)};
      const { text } = await openExtractor({ idleMs: 600_000 }).extractText({ path: ${JSON.stringify(path)}, mediaType: "application/pdf" });
      console.log(text);`;
    const program = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    program.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
    const [code] = await once(program, "exit");
    expect({ code, output }).toEqual({ code: 0, output: "hello\n" });
  });
});

it("only child processes load the libraries that read documents", () => {
  const source = join(repoRoot, "src");
  const seen = new Set<string>();
  const packages = new Set<string>();
  const follow = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, specifier = ""] of text.matchAll(/^(?:import|export)(?! type)[^;]*?from "([^"]+)"/gm)) {
      if (specifier.startsWith(".")) follow(join(file, "..", specifier));
      else packages.add(specifier);
    }
  };
  for (const start of ["kb/service.ts", "sync/daemon.ts", "cli/program.ts"]) follow(join(source, start));
  expect(seen.size).toBeGreaterThan(100);
  const heavy =
    /^(?:unpdf|pdfjs-dist|tesseract|sharp|@hyzyla|mammoth|read-excel|postal-mime|yauzl|htmlparser2)/;
  expect([...packages].filter((name) => heavy.test(name))).toEqual([]);
});

describe.skipIf(!existsSync(samples))("sample PDFs (skipped where ../shared/data/pdfs is absent)", () => {
  it("extracts as many characters as the sample's list states, without text recognition", async () => {
    const extractor = open({ ocr: { pagesMax: 0 } });
    const rows = [
      ...readFileSync(join(samples, "CHECK.md"), "utf8").matchAll(
        /^\| (\S+\.pdf) \| \d+ \| (\S+) \| (.+) \|$/gm,
      ),
    ];
    const outcomes = await Promise.all(
      rows.map(async ([, name = "", pages = "", listed = ""]) => {
        const path = join(samples, name);
        const outcome = await outcomeOf(extractor, path);
        return { name, outcome, expected: EXCEPTIONS.get(name) ?? expectedOutcome(pages, listed) };
      }),
    );
    expect(rows.length).toBeGreaterThan(40);
    expect(outcomes.map(({ name, outcome }) => [name, outcome])).toEqual(
      outcomes.map(({ name, expected }) => [name, expected]),
    );
  });

  /** Their fonts name control characters only, which are no text; the list counts them. */
  const EXCEPTIONS = new Map([
    // Their last pages have no text.
    ["ocrmypdf/multipage.pdf", "4 pages, 77 characters"],
    ["ocrmypdf/toc.pdf", "1 pages, 43 characters"],
    ["ocrmypdf/type3_font_nomapping.pdf", "pdf_without_text"],
    ["py-pdf/015-arabic/habibi-oneline-cmap.pdf", "1 pages, 23 characters"],
    ["py-pdf/015-arabic/habibi-rotated.pdf", "4 pages, 92 characters"],
    ["py-pdf/015-arabic/habibi.pdf", "1 pages, 23 characters"],
  ]);

  function expectedOutcome(pages: string, listed: string): string {
    if (listed.includes("PasswordException")) return "encrypted_pdf";
    if (listed.includes("InvalidPDF")) return "damaged_pdf";
    return listed.startsWith("0 ") ? "pdf_without_text" : `${pages} pages, ${listed} characters`;
  }

  async function outcomeOf(extractor: Extractor, path: string): Promise<string> {
    try {
      const mediaType = await detectMediaType(path);
      const { text, locations } = await extractor.extractText({ path, mediaType });
      return `${locations?.at(-1)?.page} pages, ${text.replace(/\s/g, "").length} characters`;
    } catch (error) {
      return (error as { code: string }).code;
    }
  }
});

/** Flate data that inflates to this many MB of spaces, made without holding them all. */
async function deflatedSpaces(sizeMb: number): Promise<Buffer> {
  const deflate = createDeflate({ level: 1 });
  const parts: Buffer[] = [];
  deflate.on("data", (part: Buffer) => parts.push(part));
  const spaces = Buffer.alloc(1024 * 1024, 0x20);
  for (let i = 0; i < sizeMb; i++) if (!deflate.write(spaces)) await once(deflate, "drain");
  deflate.end();
  await once(deflate, "end");
  return Buffer.concat(parts);
}

/** The locations of pages, by where their texts begin; null for a page without text. */
function pagesAt(starts: readonly (number | null)[]): object[] {
  return starts.flatMap((start, at) => (start === null ? [] : [{ start, page: at + 1 }]));
}
