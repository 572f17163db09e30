import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { docx, wordParagraph } from "../../formats/office-fixture.ts";
import { openWorld, type World } from "./harness.ts";

const PDF = ["bill.pdf", "application/pdf", Buffer.from("%PDF-1.7 bill")] as const;
const NOTE = ["note.txt", "text/plain", Buffer.from("A note.")] as const;
const LETTER = ["letter.docx", "application/octet-stream", docx(wordParagraph("A letter."))] as const;
const LATIN = [
  "old.txt",
  "text/plain",
  Buffer.from("Gr\xfc\xdfe aus der K\xfcche, sch\xf6ne W\xf6rter.", "latin1"),
] as const;

/** A mail with these attachments. */
function mail(
  subject: string,
  ...attachments: readonly (readonly [name: string, type: string, bytes: Buffer])[]
): Buffer {
  const parts = attachments.map(
    ([name, type, bytes]) =>
      `--x\r\nContent-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\n` +
      `Content-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}\r\n`,
  );
  return Buffer.from(
    `Subject: ${subject}\r\nFrom: a@example.org\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n` +
      `--x\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n${parts.join("")}--x--\r\n`,
  );
}

const CHANGES: ReadonlySet<string> = new Set(["upload", "create", "update", "delete"]);

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(() => world.end());

/** The service's resource: its title, and whether it came as a file or as text. */
const live = (): string[] =>
  world.service.live().map(({ title, url }) => `${title} as ${url === undefined ? "text" : "a file"}`);
/** The changing requests of one pass. */
/** The daemon asks at each pass whether the service reads mails, as it does after a day. */
const timing = { metadataAgainMs: 0 };
const pass = async (): Promise<string[]> => {
  const before = world.service.requests.length;
  await world.sync({ timing });
  return world.service.requests
    .slice(before)
    .map(({ operation }) => operation)
    .filter((operation) => CHANGES.has(operation));
};
const readsMails = (reads: boolean): void => {
  world.service.reads = reads ? ["message/rfc822"] : [];
};

describe("a mail with a PDF", () => {
  it("uploads a mail with a PDF once, under its subject, to a service that reads mails", async () => {
    readsMails(true);
    const bytes = mail("Bill", PDF, NOTE);
    world.write("m.eml", bytes);
    expect(await pass()).toEqual(["upload", "create"]);
    const [made] = world.service.live();
    expect(made?.title).toBe("Bill");
    expect(world.service.uploads.get(made?.url ?? "")?.content).toEqual(bytes);
    expect(await pass()).toEqual([]);
    const reported = await world.explain("m.eml");
    expect(reported.recipe).toMatchObject({
      kind: "file",
    });
    expect(reported.next.action).toBe("nothing");
    const { planned } = await world.daemon().syncOnce({ dryRun: true });
    expect(planned).toEqual([]);
  });

  it.each([
    ["a PDF", [PDF]],
    ["a PDF and an office document", [PDF, LETTER]],
  ])(
    "sends a mail with %s as text to a service that does not declare reading mails",
    async (_name, parts) => {
      world.write("m.eml", mail("Bill", ...parts));
      expect(await pass()).toEqual(["create"]);
      expect(live()).toEqual(["Bill as text"]);
      const content = world.service.live()[0]?.content;
      expect(content).toContain("- bill.pdf (application/pdf), not read: ");
      expect(content?.includes("A letter.")).toBe(parts.includes(LETTER));
      expect((await world.explain("m.eml")).recipe?.kind).toBe("content");
    },
  );

  it("sends a mail with a PDF as text to a service of the bare specification", async () => {
    await world.end();
    world = await openWorld();
    readsMails(true);
    world.write("m.eml", mail("Bill", PDF));
    await world.sync();
    expect(live()).toEqual(["Bill as text"]);
  });

  it.each([
    ["an office document, which the daemon alone reads", LETTER, "A letter."],
    ["a text that is not UTF-8", LATIN, "Grüße"],
  ])("sends a mail with a PDF as text when it also has %s", async (_name, attachment, words) => {
    readsMails(true);
    world.write("m.eml", mail("Both", PDF, attachment));
    expect(await pass()).toEqual(["create"]);
    const content = world.service.live()[0]?.content;
    expect(content).toContain(words);
    expect(content).toContain("- bill.pdf (application/pdf), not read: ");
    const explanation = await world.explain("m.eml");
    expect(explanation.recipe?.kind).toBe("content");
  });
});

it("sends a mail without PDFs and images as text, whatever the service reads", async () => {
  readsMails(true);
  world.write("m.eml", mail("Note", NOTE));
  expect(await pass()).toEqual(["create"]);
  expect(live()).toEqual(["Note as text"]);
});

describe("when the service begins to read mails", () => {
  beforeEach(async () => {
    world.write("bill.eml", mail("Bill", PDF));
    world.write("note.EML", mail("Note", NOTE));
    world.write("a.md", "# A\n");
    await world.sync();
    readsMails(true);
  });

  it("uploads mails with PDFs once in place of their text when the service begins to read mails", async () => {
    expect(await pass()).toEqual(["upload", "create", "delete"]);
    expect(live()).toEqual(["A as text", "Bill as a file", "Note as text"]);
    expect(await pass()).toEqual([]);
  });

  it("keeps an uploaded mail unchanged when the service stops reading mails, until it changes", async () => {
    await world.sync({ timing });
    readsMails(false);
    world.write("note.EML", mail("Note", ["other.txt", "text/plain", Buffer.from("Another.")]));
    expect(await pass()).toEqual(["update"]);
    expect(await pass()).toEqual([]);
    expect(live()).toEqual(["A as text", "Bill as a file", "Note as text"]);
    // After a touch it is read again, and is unchanged.
    world.write("bill.eml", mail("Bill", PDF));
    expect(await pass()).toEqual([]);
    world.write("bill.eml", mail("Bill 2", PDF));
    expect(await pass()).toEqual(["create", "delete"]);
    expect(live()).toEqual(["A as text", "Bill 2 as text", "Note as text"]);
    readsMails(true);
    expect(await pass()).toEqual(["upload", "create", "delete"]);
    expect(live()).toEqual(["A as text", "Bill 2 as a file", "Note as text"]);
  });
});

it("finds the uploaded mail again after the ledger was lost", async () => {
  readsMails(true);
  world.write("m.eml", mail("Bill", PDF));
  await world.sync();
  await world.sync({ stateDir: `${world.stateDir}-new` });
  expect(live()).toEqual(["Bill as a file"]);
});
