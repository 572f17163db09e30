import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openFileTexts } from "../../../src/cli/compose/file-texts.ts";
import {
  buildPdf,
  dynamicFormPdf,
  type PdfFixtureExtras,
  pdfWithExtras,
  textPage,
} from "../../kb/ingest/extract/pdf-fixture.ts";
import { xlsx } from "../../sync/document/office-fixture.ts";
import { buildZip } from "../../sync/document/zip-fixture.ts";
import { mailOf } from "../../kb/ingest/mail/mail-fixture.ts";

let folder: string;
let path: string;
/** One for all tests: its processes start once. */
const texts = openFileTexts();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-file-texts-"));
  path = join(folder, "a.pdf");
  writeFileSync(path, buildPdf([textPage(["Tide tables"])]));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});
const beyond = async (): Promise<string> => (await texts.read(path, "application/pdf", never))?.beyond ?? "";
const { signal: never } = new AbortController();

describe("the reader of text in files", () => {
  it("refuses no PDF, however many wait", async () => {
    const stopping = new AbortController();
    const reads = Array.from({ length: 1100 }, async () =>
      texts.read(path, "application/pdf", stopping.signal),
    );
    const results = Promise.allSettled(reads);
    expect(await reads[0]).toMatchObject({ text: "Tide tables" });
    expect(await reads[9]).toMatchObject({ text: "Tide tables" });
    const reason = new Error("enough");
    stopping.abort(reason);
    const failures = (await results).flatMap((each) =>
      each.status === "rejected" ? [each.reason as unknown] : [],
    );
    // How many were read before the stop depends on the machine.
    expect(failures.length).toBeGreaterThan(100);
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
    expect(await texts.read(path, "application/pdf", never)).toMatchObject({ text: "Tide tables" });
  });

  it("can read a file later that is missing now", async () => {
    const read = texts.read(join(folder, "none.pdf"), "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "extraction_failed", retryable: true });
  });

  it.runIf(process.platform === "linux")("fails on a PDF that takes too much processor time", async () => {
    const hasty = openFileTexts({ cpuMs: 0 });
    const read = hasty.read(path, "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "extraction_timeout" });
  });

  it("stops reading attachments when the processor time of a file is used up", async () => {
    const hasty = openFileTexts({ fileCpuMs: 0 });
    expect(await hasty.read(path, "application/pdf", never)).toMatchObject({ text: "Tide tables" });
    writeFileSync(path, pdfWithExtras({ attachments: [["a.txt", "neap"]] }));
    const read = hasty.read(path, "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "extraction_timeout" });
  });

  it("reads the author", async () => {
    writeFileSync(path, buildPdf([textPage(["text"])], { author: "Ada" }));
    expect(await beyond()).toContain("Ada");
  });

  it("can never read a locked PDF", async () => {
    writeFileSync(path, buildPdf([textPage(["text"])], { isEncrypted: true }));
    const read = texts.read(path, "application/pdf", never);
    await expect(read).rejects.toMatchObject({ code: "encrypted_pdf", retryable: false });
  });
});

describe("the reader of what is beside the pages of PDFs", () => {
  const inner = pdfWithExtras({ attachments: [["deep.txt", "neap"]] });
  it.each<[string, PdfFixtureExtras]>([
    ["properties", { property: "neap" }],
    ["bookmarks", { bookmark: "neap" }],
    ["form fields", { field: "neap" }],
    ["annotations", { note: "neap" }],
    [
      "attached texts",
      {
        attachments: [
          ["tides.txt", "spring"],
          ["b.csv", "a,neap"],
        ],
      },
    ],
    ["files attached to a page", { pinned: ["tides.txt", "neap"] }],
    ["the pages of attached PDFs", { attachments: [["a.pdf", buildPdf([textPage(["neap"])])]] }],
    ["files attached to attached PDFs", { attachments: [["a.pdf", inner]] }],
    ["attached mails", { attachments: [["a.eml", mailOf([["a.txt", "text/plain", "neap"]])]] }],
    ["attached workbooks", { attachments: [["a.xlsx", xlsx({ Tides: [["neap"]] })]] }],
    [
      "the bytes of attached pictures",
      { attachments: [["a.png", Buffer.from("\x89PNG\r\n\x1a\nneap", "latin1")]] },
    ],
  ])("reads %s", async (_name, extras) => {
    writeFileSync(path, pdfWithExtras(extras));
    expect(await beyond()).toContain("neap");
  });

  it("reads the pages of a dynamic form beside the form", async () => {
    writeFileSync(path, dynamicFormPdf("spring", "neap"));
    const inside = await texts.read(path, "application/pdf", never);
    expect(inside).toMatchObject({ text: "neap", beyond: expect.stringContaining("spring") });
  });

  it("reads any number of properties", async () => {
    const others = Array.from({ length: 150_000 }, (_, at) => `/P${at} (a)`).join(" ");
    writeFileSync(path, pdfWithExtras({ property: `a) ${others} /Keywords (neap` }));
    expect(await beyond()).toContain("neap");
  });

  const tides = (millions: number): string => "neap ".repeat(millions * 200_000);
  const pdfOf = (millions: number): Buffer => pdfWithExtras({ attachments: [["a.txt", tides(millions)]] });
  it.each<[string, PdfFixtureExtras]>([
    ["PDFs", { attachments: [1, 2, 3].map((at) => [`${at}.pdf`, pdfOf(12)] as const) }],
    [
      "a workbook and a PDF",
      {
        attachments: [
          ["a.xlsx", xlsx({ Tides: [[tides(2)]] })],
          ["b.pdf", pdfOf(32)],
        ],
      },
    ],
  ])(
    "can never read a PDF with %s that unpack to more text than a document may have",
    async (_name, extras) => {
      writeFileSync(path, pdfWithExtras(extras));
      await expect(beyond()).rejects.toMatchObject({
        retryable: false,
        message: expect.stringContaining("more text than"),
      });
    },
  );

  it.each<[string, PdfFixtureExtras, string]>([
    ["an archive", { attachments: [["a.zip", buildZip({ "a.txt": "neap" })]] }, "a zip archive"],
    ["binary data", { pinned: ["a.dat", Buffer.from([0, 1, 2, 0, 0, 9, 0])] }, "binary data"],
    ["a broken PDF", { attachments: [["a.pdf", "%PDF-1.4 broken"]] }, "damaged"],
    ["a file too deep inside files", { attachments: [["1.pdf", nested(3)]] }, "it is 4 files deep"],
    [
      "the 101st file",
      { attachments: Array.from({ length: 101 }, (_, at) => [`${at}.txt`, "a"]) },
      "no more than 100",
    ],
  ])("can never read a PDF that contains %s", async (_name, extras, words) => {
    writeFileSync(path, pdfWithExtras(extras));
    await expect(beyond()).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining(words),
    });
  });
});

/** A PDF in a PDF, so often. */
function nested(depth: number): Buffer {
  return pdfWithExtras(depth === 0 ? {} : { attachments: [["a.pdf", nested(depth - 1)]] });
}

describe("the reader of text in mails", () => {
  const alternatives = [
    "MIME-Version: 1.0",
    "Subject: Tides",
    'Content-Type: multipart/alternative; boundary="b"',
    "",
    "--b",
    "Content-Type: text/plain",
    "",
    "plain neap",
    "--b",
    "Content-Type: text/html",
    "",
    "<p>formatted</p>",
    "--b--",
    "",
  ].join("\r\n");
  const read = async (mail: string): Promise<string> => {
    writeFileSync(path, mail);
    const inside = await texts.read(path, "message/rfc822", never);
    return `${inside?.text}\n${inside?.beyond}`;
  };

  it.each<[string, string]>([
    ["the body", mailOf([])],
    ["attached texts", mailOf([["a.txt", "text/plain", "neap"]])],
    ["the pages of attached PDFs", mailOf([["a.pdf", "application/pdf", buildPdf([textPage(["neap"])])]])],
    [
      "form fields of attached PDFs",
      mailOf([["a.pdf", "application/pdf", pdfWithExtras({ field: "neap" })]]),
    ],
    ["attached mails", mailOf([["a.eml", "message/rfc822", mailOf([["a.txt", "text/plain", "neap"]])]])],
    ["the plain body beside a formatted one", alternatives],
    ["names of attached files", mailOf([["neap.txt", "text/plain", "a"]])],
    ["attached keys", mailOf([["a.asc", "application/pgp-keys", "neap"]])],
    [
      "signed parts",
      mailOf([["smime.p7m", "application/pkcs7-mime", Buffer.from("\x30\x80neap", "latin1")]]),
    ],
  ])("reads %s", async (name, mail) => {
    expect(await read(mail)).toContain(name === "the body" ? "See the files." : "neap");
  });

  it("reads past a signature", async () => {
    const signature = Buffer.from([0x30, 0x80, 0, 1]);
    expect(await read(mailOf([["smime.p7s", "application/pkcs7-signature", signature]]))).toContain(
      "See the files.",
    );
  });

  it("can never read a mail that contains an archive", async () => {
    const mail = mailOf([["a.zip", "application/zip", buildZip({ "a.txt": "neap" })]]);
    await expect(read(mail)).rejects.toMatchObject({ code: "attachment_not_read", retryable: false });
  });
});
