import { lstatSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openArchive } from "../../src/formats/conversion/archive.ts";
import { readDocument } from "../../src/sync/scan/read/read.ts";
import { openRules } from "../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../sync/scan/tree.ts";
import { docx, epub, openDocument, pptx, shape, wordParagraph, xlsx } from "./office-fixture.ts";
import { buildZip } from "./zip-fixture.ts";

let root = "";
beforeEach(() => {
  root = makeTree({});
});
afterEach(() => removeTree(root));

/** Elements in each other: enough for a library that reads them one in the other, and not for one that takes minutes over them. */
const NESTED = 1000;

/** Every reason of our own, in full: a library's message is a different sentence. */
const OURS = [
  "its text cannot be read: it is damaged, or not quite of the format that it seems to be",
  "its text cannot be read: its parts are nested too deeply",
  "its text cannot be read: it is damaged: its archive cannot be unpacked",
  "its text cannot be read: it is damaged: it has no body",
  /^its text cannot be read: it is damaged: its part [\w./-]+ is missing$/,
  /^its text cannot be read: more than \d+ elements in each other$/,
  "its text cannot be read: it is damaged: it does not say where its contents are",
  "its text cannot be read: binary data of an unknown kind: no text is taken from it",
  "its text cannot be read: it is protected by a password",
  /^its text cannot be read: its part "[^]{1,200}" of \d+ bytes unpacks to \d+: no document that people made does$/,
  /^its text cannot be read: it unpacks to \d+ bytes or more, over the limit/,
  /^its text cannot be read: it holds \d+ parts, more than any document has/,
  /^reading its text takes (?:more memory|longer) than the limit of \d+ (?:MB|s)$/,
  "its name says office document or book, but its bytes are none",
  "a zip archive: no text is taken from it",
  /^there is no text in the (?:document|mail|page|table)/,
  "binary data of an unknown kind: no text is taken from it",
];

const MAIL = [
  "From: a@b.example",
  "To: c@d.example",
  "Subject: Tides",
  "MIME-Version: 1.0",
  'Content-Type: multipart/mixed; boundary="x"',
  "",
  "--x",
  "Content-Type: text/html; charset=utf-8",
  "Content-Transfer-Encoding: base64",
  "",
  Buffer.from("<p>The sea.</p>").toString("base64"),
  "--x--",
  "",
].join("\r\n");

it.each<[string, Buffer]>([
  ["a.docx", docx(`${wordParagraph("Head", "heading1")}${wordParagraph("Text.")}`, { title: "T" })],
  ["a.pptx", pptx([shape(["Tides", "Twice a day"])], { title: "T", notes: { 0: "<p:notes/>" } })],
  [
    "a.xlsx",
    xlsx({
      Prices: [
        ["Item", "Price"],
        ["Bolt", 1.5],
      ],
    }),
  ],
  ["a.odt", openDocument("text", "<text:h>Head</text:h><text:p>Text.</text:p>", { title: "T" })],
  ["a.epub", epub("T", ["<html><body><h1>One</h1><p>First.</p></body></html>"])],
  ["a.eml", Buffer.from(MAIL)],
  ["a.html", Buffer.from("<!doctype html><title>T</title><main><h1>Head</h1><p>Text.</p></main>")],
  ["a.csv", Buffer.from("Item,Price\nBolt,1.5\nNut,2\n")],
])(
  "refuses a broken %s in our own words only",
  async (path, bytes) => {
    const random = mulberry32(20_261_122);
    const broken = [
      ...cuts(bytes, random, 9),
      ...(bytes.toString("latin1", 0, 2) === "PK" ? await brokenParts(bytes, random) : []),
    ];
    const foreign = new Set<string>();
    for (const one of broken) {
      const reason = await reasonOf(path, one);
      const isOurs = OURS.some((words) =>
        typeof words === "string" ? words === reason : words.test(reason),
      );
      if (reason !== "" && !isOurs) foreign.add(reason);
    }
    expect([...foreign]).toEqual([]);
  },
  120_000,
);

/** Copies cut off, and with bytes changed. */
function cuts(bytes: Buffer, random: () => number, count: number): Buffer[] {
  return Array.from({ length: count }, (_, at) => {
    const copy = Buffer.from(at % 3 === 0 ? bytes.subarray(0, Math.floor(bytes.length * random())) : bytes);
    for (let change = at % 3; change > 0 && copy.length > 0; change--)
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
    return copy;
  });
}

/** The archive with each of its parts broken in turn, each in two or three of these ways: cut off, emptied, nested without end, of other elements. */
async function brokenParts(bytes: Buffer, random: () => number): Promise<Buffer[]> {
  const archive = await openArchive(bytes);
  const parts: Record<string, Buffer> = {};
  for (const name of archive.names) parts[name] = (await archive.bytes(name)) ?? Buffer.alloc(0);
  archive.close();
  return Object.entries(parts).flatMap(([name, part], at) => {
    const text = part.toString();
    const element = /<([\w:]+)[ >]/.exec(text)?.[1] ?? "x";
    return [
      Buffer.from(text.slice(0, Math.floor(text.length * random()))),
      Buffer.alloc(0),
      Buffer.from(`<${element}>`.repeat(NESTED)),
      Buffer.from(text.replaceAll(/ (?:r:)?[iI]d="[^"]*"/g, "")),
      Buffer.from(text.replace(/<(?!\?)/, "<x>&nothing;<")),
    ]
      .filter((_, variant) => (variant + at) % 2 === 0)
      .map((changed) => buildZip({ ...parts, [name]: changed }));
  });
}

/** Empty where the document was read. */
async function reasonOf(path: string, bytes: Buffer): Promise<string> {
  addFiles(root, { [path]: bytes });
  const { size, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
  const entry = { path, sizeBytes: size, mtimeMs, ctimeMs, ino };
  const outcome = await readDocument(join(root, path), entry, openRules(sourceAt(root)), {});
  return "reason" in outcome ? outcome.reason : "";
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
