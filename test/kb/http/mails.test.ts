import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { drawing, picture } from "../ingest/extract/picture-fixture.ts";
import { type MailFile, mailOf } from "../ingest/mail/mail-fixture.ts";
import { createBody, fileForm, openRunning, type Answered, type Running } from "../service/running.ts";

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

/** Creates a resource from an uploaded file. */
async function taken(bytes: string | Uint8Array, name = "mail.eml", type = ""): Promise<Answered> {
  const upload = await running.send("POST", "/image/processing/upload", {
    body: fileForm(bytes, name, "file", type),
  });

  const made = await running.send("POST", "/api/rag/resource", {
    body: createBody({ content: undefined, url: upload.json.file_url, owner_id: "mails" }),
  });
  expect(made).toMatchObject({ status: 201 });
  return running.send("GET", `/api/rag/resource/${made.json.data._id}`);
}
const textOf = async (attachments: readonly MailFile[]): Promise<string> =>
  (await taken(mailOf(attachments))).json.data.content;

describe("an uploaded mail", { timeout: 120_000 }, () => {
  it("extracts people, body and the text of attached PDFs, images, texts and mails from a mail", async () => {
    const image = await (await picture(["Spring tide at noon"])).png().toBuffer();
    const inner = mailOf([["deep.txt", "text/plain", "Deep words."]], "Subject: Within\r\n");
    const attachments: readonly MailFile[] = [
      ["report.pdf", "application/pdf", buildPdf([textPage(["The pumpkin ledger."])])],
      ["scan.png", "image/png", image],
      ["rows.csv", "text/csv", "Item,Price\nBolt,1.5\nNut,0.5\n"],
      ["forwarded.eml", "message/rfc822", inner],
    ];
    const made = await taken(mailOf(attachments));
    expect(made.json.data.content).toBe(
      [
        "# Tides",
        "- From: a@example.org",
        "See the files.",
        "Attachments:\n- report.pdf (application/pdf)\n- scan.png (image/png)\n- rows.csv (text/csv)\n- forwarded.eml (message/rfc822)",
        "## Attachment: report.pdf",
        "The pumpkin ledger.",
        "## Attachment: scan.png",
        "Spring tide at noon",
        "## Attachment: rows.csv",
        "Item: Bolt; Price: 1.5\nItem: Nut; Price: 0.5",
        "## Attachment: forwarded.eml",
        "# Within\n\nSee the files.\n\nAttachments:\n- deep.txt (text/plain)\n\n## Attachment: deep.txt\n\nDeep words.",
      ].join("\n\n"),
    );
    const found = await running.send("POST", "/rag/query", {
      body: { query: "pumpkin", doc_id: made.json.data._id },
    });
    expect(found.json.results[0].payload.content).toContain("The pumpkin ledger.");
    // No file of the attachments remains.
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it("lists unread attachments of a mail with the reason", async () => {
    const strokes = await drawing().png().toBuffer();
    const text = await textOf([
      ["locked.pdf", "application/pdf", buildPdf([textPage(["Secret"])], { isEncrypted: true })],
      ["broken.pdf", "application/pdf", "%PDF-1.4 broken"],
      ["strokes.png", "image/png", strokes],
      ["letter.docx", "application/octet-stream", Buffer.from("504b0304140000000800", "hex")],
      ["empty.txt", "text/plain", "  \n"],
    ]);
    expect(text.split("\n").filter((line) => line.startsWith("- "))).toEqual([
      "- From: a@example.org",
      "- locked.pdf (application/pdf), not read: the PDF is protected by a password",
      expect.stringMatching(/^- broken\.pdf \(application\/pdf\), not read: the PDF/),
      expect.stringMatching(/^- strokes\.png \(image\/png\), not read: /),
      expect.stringMatching(/^- letter\.docx \(application\/octet-stream\), not read: this type of file/),
      "- empty.txt (text/plain), not read: there is no text in it",
    ]);
    expect(text).not.toContain("## Attachment");
  });

  it("reads up to 20 attachments, 16 MB and three levels of nested mails", async () => {
    const many = Array.from({ length: 22 }, (_, at): MailFile => [`${at}.txt`, "text/plain", `Word ${at}.`]);
    const text = await textOf(many);
    expect(text).toContain("## Attachment: 19.txt\n\nWord 19.");
    expect(text).toContain(
      "- 20.txt (text/plain), not read: at most 20 attachments and 16 MB of a mail are read",
    );
    const large = Buffer.alloc(10 * 1024 * 1024, "word ");
    const small = Buffer.alloc(2 * 1024 * 1024, "word ");
    const sized = await textOf([
      ["small.txt", "text/plain", small],
      ["large.txt", "text/plain", large],
      ["larger.txt", "text/plain", large],
      ["last.txt", "text/plain", "Last words."],
    ]);
    expect(sized).toContain(
      "- large.txt (text/plain), not read: it holds too much text for a part of a mail",
    );
    expect(sized).toContain(
      "- larger.txt (text/plain), not read: at most 20 attachments and 16 MB of a mail are read",
    );
    expect(sized).toContain("Last words.");
    let nested = mailOf([["deepest.txt", "text/plain", "Deepest words."]]);
    for (let depth = 0; depth < 3; depth++) nested = mailOf([[`m${depth}.eml`, "message/rfc822", nested]]);
    const deep = (await taken(nested)).json.data.content;
    expect(deep).toContain("- m0.eml (message/rfc822), not read: it lies in a mail in a mail in a mail");
    expect(deep).toContain("## Attachment: m1.eml");
  });

  it("refuses a mail with excessive nesting with a clear message", async () => {
    let part = "Content-Type: text/plain\r\n\r\nDeep.\r\n";
    for (let depth = 0; depth < 80; depth++)
      part = `Content-Type: multipart/mixed; boundary=n${depth}\r\n\r\n--n${depth}\r\n${part}\r\n--n${depth}--\r\n`;
    const upload = await running.send("POST", "/image/processing/upload", {
      body: fileForm(`Subject: Nest\r\n${part}`, "mail.eml"),
    });
    const made = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url: upload.json.file_url }),
    });
    expect(made).toMatchObject({
      status: 422,
      json: {
        message: expect.stringMatching(/^the e-mail is not taken: it is damaged/i),
        error: { code: "mail_unreadable" },
      },
    });
  });

  it("recognises a mail by its declared type, and leaves other text as it is", async () => {
    const declared = await taken(mailOf([]), "message", "message/rfc822");
    expect(declared.json.data.content).toBe("# Tides\n\n- From: a@example.org\n\nSee the files.");
    const note = "Buy milk\nFrom: the shop\n\nand bread";
    expect((await taken(note)).json.data.content).toBe(note);
  });
});
