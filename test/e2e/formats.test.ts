import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FormData } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UploadAnswer } from "../../src/wire/upload.ts";
import { CollectionsAnswer, ResourceAnswer } from "../../src/wire/resource.ts";
import { buildPdf, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import { picture as drawn } from "../kb/ingest/extract/picture-fixture.ts";
import { docx, relations, wordParagraph } from "../formats/office-fixture.ts";
import { agreed, search, send, startUp, stop, temporaryFolder } from "./program.ts";
import type { Running } from "./program.ts";

/** A document of each form, with words that stand in it alone: those to be found, and those that are no text. */
interface Sample {
  readonly name: string;
  readonly bytes: string | Buffer;
  readonly holds: readonly string[];
  readonly without: string;
}

const picture = "iVBORw0KGgoQuollpictureAAAANSUhEUg";
const notebook = JSON.stringify({
  nbformat: 4,
  nbformat_minor: 5,
  metadata: { kernelspec: { language: "python" } },
  cells: [
    { cell_type: "markdown", source: ["# Bilbies\n", "Counting bilbycells at night."] },
    {
      cell_type: "code",
      source: "print('wombatcode')",
      outputs: [
        { output_type: "stream", name: "stdout", text: "dingooutput\n" },
        { output_type: "display_data", data: { "image/png": picture } },
      ],
    },
  ],
});

/** What the service reads itself. */
const UPLOADED: readonly Sample[] = [
  {
    name: "harvest.ipynb",
    bytes: notebook,
    holds: ["bilbycells", "wombatcode", "dingooutput"],
    without: picture,
  },
  {
    name: "letter.rtf",
    bytes: "{\\rtf1\\ansi{\\fonttbl{\\f0 Quollfont;}}\\f0 The possumletter says Gr\\'f6\\'dfe.\\par}",
    holds: ["possumletter", "Größe"],
    without: "Quollfont",
  },
  {
    name: "talk.vtt",
    bytes:
      "WEBVTT\n\nSTYLE\n::cue { color: quollstyle }\n\n00:01.000 --> 00:02.000\n<v Anna>The numbatspeech begins.\n",
    holds: ["numbatspeech"],
    without: "quollstyle",
  },
  {
    name: "film.srt",
    bytes: "1\n00:00:01,000 --> 00:00:02,500\n<i>The potorooscene</i> begins.\n",
    holds: ["potorooscene"],
    without: "<i>",
  },
];

const margin = (tag: "ftr" | "hdr", text: string): string =>
  `<w:${tag} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">${wordParagraph(text)}</w:${tag}>`;
const report = docx(wordParagraph("The koalabody of the report."), {
  parts: {
    "word/_rels/document.xml.rels": relations([
      ["rId1", "styles", "styles.xml"],
      ["rId2", "header", "header1.xml"],
      ["rId3", "footer", "footer1.xml"],
    ]),
    "word/header1.xml": margin("hdr", "The emuheader above"),
    "word/footer1.xml": margin("ftr", "The kiwifooter below"),
  },
});
const mail = [
  "From: anna@example.org",
  "Subject: Quokkasubject",
  'Content-Type: multipart/mixed; boundary="x"',
  "",
  "--x",
  "Content-Type: text/plain",
  "",
  "The wallabybody of the mail.",
  "--x",
  "Content-Type: application/octet-stream",
  'Content-Disposition: attachment; filename="inside.docx"',
  "Content-Transfer-Encoding: base64",
  "",
  docx(wordParagraph("The echidnaattachment of the mail.")).toString("base64"),
  "--x",
  "Content-Type: application/pdf",
  'Content-Disposition: attachment; filename="platypusbill.pdf"',
  "",
  "%PDF-1.7",
  "--x--",
  "",
].join("\r\n");

/** A mail with a PDF and a picture, which the service reads. */
const pictured = Buffer.from(
  [
    "From: Ann <ann@example.org>",
    "Subject: The kowarisubject",
    'Content-Type: multipart/mixed; boundary="y"',
    "",
    "--y",
    "Content-Type: text/plain",
    "",
    "The dunnartbody of the mail.",
    ...attached("ledger.pdf", "application/pdf", buildPdf([textPage(["The cuscusledger of the year."])])),
    ...attached("scan.png", "image/png", await (await drawn(["Sugarglider at noon"])).png().toBuffer()),
    ...attached("note.txt", "text/plain", Buffer.from("The bettongnote beside them.")),
    "--y--",
    "",
  ].join("\r\n"),
);

function attached(name: string, type: string, bytes: Uint8Array): readonly string[] {
  return [
    "--y",
    `Content-Type: ${type}`,
    `Content-Disposition: attachment; filename="${name}"`,
    "Content-Transfer-Encoding: base64",
    "",
    Buffer.from(bytes).toString("base64"),
  ];
}

/** What the daemon sends; it reads office documents and mails itself. */
const SENT: readonly Sample[] = [
  ...UPLOADED,
  { name: "report.docx", bytes: report, holds: ["koalabody", "emuheader", "kiwifooter"], without: "<w:" },
  {
    name: "mail.eml",
    bytes: mail,
    // Of a PDF beside an office document the name alone, with the reason.
    holds: ["quokkasubject", "wallabybody", "echidnaattachment", "platypusbill"],
    without: "--x",
  },
  {
    name: "pictured.eml",
    bytes: pictured,
    holds: ["kowarisubject", "dunnartbody", "cuscusledger", "sugarglider", "bettongnote"],
    without: "--y",
  },
];

const folder = temporaryFolder("formats-docs");
const state = temporaryFolder("formats-state");
let running: Running;
let collectionId: string;
let ownerId: string;
beforeAll(async () => {
  for (const { name, bytes } of SENT) writeFileSync(join(folder.path, name), bytes);
  running = await startUp(["up", folder.path, "--tier", "fastest", "--port", "0"], state.path);
  const status = await agreed(folder.path, state.path, SENT.length);
  collectionId = status.collectionId ?? "";
  ({ ownerId } = status);
});
afterAll(async () => {
  await stop(running);
  folder.remove();
  state.remove();
});

/** The ids of the resources in which an owner finds a word. */
async function find(query: string, owner: string): Promise<string[]> {
  const { results } = await search(running, { query, collection_id: collectionId, owner_id: owner });
  return [...new Set(results.map(({ payload }) => payload.resourceId))];
}

async function textOf(id: string): Promise<string> {
  const { json } = await send(running, "GET", `/api/rag/resource/${id}`);
  return ResourceAnswer.parse(json).data.content ?? "";
}

describe("a file in the folder", () => {
  it.each(SENT)(
    "a file in the folder is found by all its text, and by nothing else of it: $name",
    async ({ holds, without }) => {
      const found = await Promise.all(holds.map((word) => find(word, ownerId)));
      const [id = ""] = found[0] ?? [];
      expect(found).toEqual(holds.map(() => [id]));
      expect(await textOf(id)).not.toContain(without);
    },
  );
});

describe("an upload", () => {
  it.each(UPLOADED)(
    "an upload is found by all its text, and by nothing else of it: $name",
    async (sample) => {
      const { name, bytes, holds, without } = sample;
      const form = new FormData();
      form.append("file", new Blob([typeof bytes === "string" ? bytes : new Uint8Array(bytes)]), name);
      const uploaded = await send(running, "POST", "/image/processing/upload", { body: form });
      const { file_url: url } = UploadAnswer.parse(uploaded.json);
      const details = await tierOf(collectionId);
      const body = JSON.stringify({
        title: "An upload",
        description: "",
        url,
        collection_details: details,
        owner_id: name,
      });
      const made = await send(running, "POST", "/api/rag/resource", { body });
      expect(made.status).toBe(201);
      const { _id: id } = ResourceAnswer.parse(made.json).data;
      for (const word of holds) expect(await find(word, name)).toEqual([id]);
      expect(await textOf(id)).not.toContain(without);
    },
  );
});

/** The tier of a collection of the account. */
async function tierOf(id: string): Promise<string | undefined> {
  const { json } = await send(running, "GET", "/api/rag/collections");
  return CollectionsAnswer.parse(json).data.collections.find(({ _id }) => _id === id)?.details;
}
