import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openPdfTexts } from "../../../src/cli/compose/pdf-texts.ts";
import type { FileTexts } from "../../../src/sync/read/secret-check.ts";
import { buildPdf, textPage } from "../../kb/ingest/extract/pdf-fixture.ts";

let folder: string;
let path: string;
let texts: FileTexts;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-pdf-texts-"));
  path = join(folder, "a.pdf");
  writeFileSync(path, buildPdf([textPage(["Tide tables"])]));
  texts = openPdfTexts();
});
afterEach(() => {
  texts.close();
  rmSync(folder, { recursive: true });
});
const { signal: never } = new AbortController();

describe("the reader of text in PDFs", () => {
  it("refuses no PDF, however many wait", async () => {
    const stopping = new AbortController();
    const reads = Array.from({ length: 1100 }, async () =>
      texts.read(path, "application/pdf", stopping.signal),
    );
    const results = Promise.allSettled(reads);
    expect(await reads[0]).toContain("Tide tables");
    expect(await reads[9]).toContain("Tide tables");
    const reason = new Error("enough");
    stopping.abort(reason);
    const failures = (await results).flatMap((each) =>
      each.status === "rejected" ? [each.reason as unknown] : [],
    );
    expect(failures.length).toBeGreaterThan(1000);
    expect(failures.filter((failure) => failure !== reason)).toEqual([]);
  });

  it("takes no text from other files", async () => {
    expect(await texts.read(path, "image/png", never)).toBeUndefined();
  });

  it("fails with the signal's reason when it is aborted, and reads on", async () => {
    const stopping = new AbortController();
    const reads = [1, 2, 3].map(async () => texts.read(path, "application/pdf", stopping.signal));
    const results = Promise.allSettled(reads);
    const reason = new Error("enough");
    stopping.abort(reason);
    expect(await results).toEqual(reads.map(() => ({ status: "rejected", reason })));
    expect(await texts.read(path, "application/pdf", never)).toContain("Tide tables");
  });

  it("can read a file later that is missing now", async () => {
    const read = texts.read(join(folder, "none.pdf"), "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "extraction_failed", retryable: true });
  });

  it("can read a PDF later that takes too long now", async () => {
    const words = deflateSync(Buffer.from("BT /F1 12 Tf 72 700 Td (word) Tj ET ".repeat(1_000_000)), {
      level: 1,
    });
    writeFileSync(path, buildPdf([{ bytes: words, filter: "/Filter /FlateDecode" }]));
    const hasty = openPdfTexts({ timeoutMs: 300 });
    const read = hasty.read(path, "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "extraction_timeout", retryable: true });
    hasty.close();
  });

  it("reads the author", async () => {
    writeFileSync(path, buildPdf([textPage(["text"])], { author: "Ada" }));
    expect(await texts.read(path, "application/pdf", never)).toContain("Ada");
  });

  it("can never read a locked PDF", async () => {
    writeFileSync(path, buildPdf([textPage(["text"])], { isEncrypted: true }));
    const read = texts.read(path, "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "encrypted_pdf", retryable: false });
  });
});
