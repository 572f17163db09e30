import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openFileTexts } from "../../../src/cli/compose/file-texts.ts";
import type { TroubledFile } from "../../../src/wire/daemon-files.ts";
import {
  buildPdf,
  type PageContent,
  type PdfFixtureExtras,
  pdfWithExtras,
  textPage,
} from "../../kb/ingest/extract/pdf-fixture.ts";
import { mailOf } from "../../kb/ingest/mail/mail-fixture.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import type { FileTexts } from "../../../src/sync/read/secret-check.ts";
import { openWorld, until, type World } from "./harness.ts";

const TOKEN = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");
const ON = { settings: { blockSecrets: true } };
/** Tests that start processes. */
const SLOW = { timeout: 120_000 };
/** One for all tests: its process starts once. */
const FILE_TEXTS = openFileTexts();
let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.end());

const troubled = (): readonly TroubledFile[] => {
  const daemon = world.daemon();
  return daemon.troubled({ limit: 10 });
};
const everything = (): string => JSON.stringify([world.activity, world.service.requests]);

/** A reader that gives every file the result of `read` as its text. */
function textsOf(read: (signal: AbortSignal) => Promise<string>): FileTexts {
  return { read: async (_path, _type, signal) => ({ text: await read(signal), beyond: "" }) };
}

describe("a file with a secret", () => {
  it("a file with a secret is not sent, and is listed with rule and line, never with the secret", async () => {
    world.write("a.md", `# Notes\n\ntoken ${TOKEN}\n`);
    world.write("b.md", "no secret");
    await world.sync(ON);
    expect(world.service.live().map(({ title }) => title)).toEqual(["b.md"]);
    const [file] = troubled();
    expect(file).toMatchObject({ path: "a.md", state: "failed", code: "secret" });
    expect(file?.message).toContain("line 3 looks like a secret (github: GITHUB_TOKEN)");
    expect(file?.message).toContain('"allowSecrets": ["/a.md"]');
    expect(everything()).not.toContain(TOKEN);
  });

  it("keeps the version at the service when a later one has a secret, and says so", async () => {
    world.write("a.md", "first");
    await world.sync(ON);
    world.write("a.md", `second ${TOKEN}`);
    await world.sync(ON);
    expect(world.service.live()).toMatchObject([{ content: "first" }]);
    expect(troubled()[0]?.message).toContain("the service still has the version before");
  });

  it("a file with a secret is sent once the secret is removed", async () => {
    world.write("a.md", `first ${TOKEN}`);
    await world.sync(ON);
    world.write("a.md", "second");
    await world.sync(ON);
    expect(world.service.live()).toMatchObject([{ content: "second" }]);
  });

  it("a file with a secret is sent once the configuration allows it", async () => {
    world.write("fixtures/a.md", `first ${TOKEN}`);
    await world.sync(ON);
    expect(world.service.live()).toEqual([]);
    await world.sync({ ...ON, sources: [world.source({ allowSecrets: ["fixtures/**"] })] });
    expect(world.service.live()).toHaveLength(1);
  });

  it("a file with a secret is sent if nothing is blocked", async () => {
    world.write("a.md", TOKEN);
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });

  it.each([
    ["its title", "---\ntitle: $\n---\n\ntext"],
    ["its tags", "---\ntags: [$]\n---\n\ntext"],
  ])("a file with a secret is not sent if the secret is in %s", async (_name, text) => {
    world.write("a.md", text.replace("$", TOKEN));
    await world.sync(ON);
    expect(world.service.live()).toEqual([]);
  });

  it("a file with a secret is not sent if its raw bytes show one", async () => {
    writeFileSync(join(world.root, "a.pdf"), `%PDF-1.4\n% ${TOKEN}\n%%EOF\n`);
    await world.sync(ON);
    expect(world.service.live()).toEqual([]);
    expect(troubled()).toMatchObject([{ path: "a.pdf", code: "secret" }]);
  });

  it(
    "a PDF with a secret in its compressed text is not sent, nor one whose text cannot be read",
    SLOW,
    async () => {
      const page = ({ bytes }: PageContent): PageContent => ({
        bytes: deflateSync(bytes),
        filter: "/Filter /FlateDecode",
      });
      world.write("good.pdf", buildPdf([page(textPage(["Tide tables"]))]));
      world.write("secret.pdf", buildPdf([page(textPage(["first"])), page(textPage([`token ${TOKEN}`]))]));
      world.write("broken.pdf", "%PDF-1.4 broken");
      world.write("locked.pdf", buildPdf([textPage(["text"])], { isEncrypted: true }));
      await world.sync({ ...ON, fileTexts: FILE_TEXTS });
      expect(world.service.live().map(({ title }) => title)).toEqual(["good.pdf"]);
      const daemon = world.daemon();
      const held = new Map(daemon.troubled({ limit: 10 }).map((file) => [file.path, file]));
      await daemon.close();
      expect(held.get("secret.pdf")).toMatchObject({
        state: "failed",
        code: "secret",
        message: expect.stringMatching(/^the text inside it looks like a secret \(github: GITHUB_TOKEN\)/),
      });
      for (const path of ["broken.pdf", "locked.pdf"])
        expect(held.get(path)).toMatchObject({
          state: "failed",
          code: "not_checked",
          message: expect.stringMatching(
            /^the text inside it cannot be checked for secrets .*"allowSecrets": \["\/\w+\.pdf"\]/,
          ),
        });
      expect(everything()).not.toContain(TOKEN);
      const sources = [world.source({ allowSecrets: ["broken.pdf"] })];
      await world.sync({ ...ON, fileTexts: FILE_TEXTS, sources });
      expect(
        world.service
          .live()
          .map(({ title }) => title)
          .toSorted(),
      ).toEqual(["broken.pdf", "good.pdf"]);
    },
  );

  it("a PDF whose text cannot be read at present is parked, and a later check sends it", async () => {
    world.write("a.pdf", buildPdf([textPage(["Tide tables"])]));
    const busy = new KbsyncError("reading is not possible at present", { code: "any", retryable: true });
    let fails = true;
    const texts = textsOf(async () => await (fails ? Promise.reject(busy) : Promise.resolve("a")));
    const daemon = world.daemon({ ...ON, fileTexts: texts });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await until(() => daemon.troubled({ limit: 10 }).length > 0);
    expect(world.service.live()).toEqual([]);
    expect(daemon.troubled({ limit: 10 })).toMatchObject([
      {
        path: "a.pdf",
        state: "parked",
        code: "not_checked",
        message: expect.stringContaining(
          "cannot be checked for secrets (reading is not possible at present)",
        ),
      },
    ]);
    fails = false;
    await daemon.retry();
    await until(() => world.service.live().length === 1);
    stopping.abort();
    await running;
    await daemon.close();
  });

  it("counts each check of a PDF as a move of the pulse, and ends the rest when the daemon stops", async () => {
    world.write("first.md", "the collection becomes known");
    await world.sync(ON);
    for (const name of ["a", "b", "c"]) world.write(`${name}.pdf`, buildPdf([textPage([name])]));
    const waiting: { readonly signal: AbortSignal; readonly end: (text: string) => void }[] = [];
    const texts = textsOf(async (signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      signal.addEventListener("abort", () => reject(signal.reason));
      waiting.push({ signal, end: resolve });
      return promise;
    });
    const daemon = world.daemon({ ...ON, fileTexts: texts });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await until(() => waiting.length === 3);
    // No answer of the service moves the pulse.
    const answered = Promise.withResolvers<void>();
    world.service.fault = () => ({ kind: "wait", until: answered.promise });
    const before = daemon.pulse().queue.moves;
    waiting[0]?.end("");
    await until(() => daemon.pulse().queue.moves > before);
    answered.resolve();
    stopping.abort();
    await running;
    await daemon.close();
    expect(waiting.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
    world.service.fault = () => undefined;
    await world.sync({ ...ON, fileTexts: FILE_TEXTS });
    expect(world.service.live()).toHaveLength(4);
  });

  it.each<[string, PdfFixtureExtras]>([
    ["a form field", { field: TOKEN }],
    ["an attached text", { attachments: [["a.txt", TOKEN]] }],
  ])("a PDF with a secret in %s is not sent", SLOW, async (_name, extras) => {
    world.write("a.pdf", pdfWithExtras(extras));
    await world.sync({ ...ON, fileTexts: FILE_TEXTS });
    expect(world.service.live()).toEqual([]);
    expect(troubled()).toMatchObject([
      {
        code: "secret",
        message: expect.stringMatching(
          /^(?:a property, form field, note or attachment in it|line \d+) looks like/,
        ),
      },
    ]);
    expect(everything()).not.toContain(TOKEN);
  });

  it("a mail that is sent as a file is not sent with a secret in an attached PDF", SLOW, async () => {
    await world.end();
    world = await openWorld({ collections: true });
    world.service.reads = ["message/rfc822"];
    const pdf = pdfWithExtras({ attachments: [["a.txt", TOKEN]] });
    world.write("a.eml", mailOf([["a.pdf", "application/pdf", pdf]]));
    world.write("b.eml", mailOf([["b.pdf", "application/pdf", buildPdf([textPage(["Tide tables"])])]]));
    await world.sync({ ...ON, fileTexts: FILE_TEXTS });
    expect(world.service.live().map(({ title }) => title)).toEqual(["Tides"]);
    expect(world.service.uploads.size).toBe(1);
    expect(troubled()).toMatchObject([{ path: "a.eml", code: "secret" }]);
  });

  it("a PDF that takes too much memory is tried five times, then fails until it changes", async () => {
    world.write("a.pdf", buildPdf([textPage(["Tide tables"])]));
    const huge = new KbsyncError("it takes more memory than it may", { code: "extraction_memory" });
    let reads = 0;
    const texts = textsOf(async () => {
      reads += 1;
      return await Promise.reject(huge);
    });
    for (let pass = 0; pass < 6; pass++) await world.sync({ ...ON, fileTexts: texts });
    expect([reads, world.activity.map(({ outcome }) => outcome)]).toEqual([
      5,
      ["parked", "parked", "parked", "parked", "refused"],
    ]);
    world.write("a.pdf", buildPdf([textPage(["Spring tides"])]));
    await world.sync({ ...ON, fileTexts: textsOf(async () => await Promise.resolve("Spring tides")) });
    expect(world.service.live()).toHaveLength(1);
  });

  it("a dry run counts the text inside PDFs, and says what the check would hold back", SLOW, async () => {
    world.write("a.pdf", buildPdf([textPage(["Tide tables"])]));
    world.write("b.pdf", pdfWithExtras({ field: "neap", attachments: [["a.txt", TOKEN]] }));
    world.write("c.pdf", "%PDF-1.4 broken");
    world.write("d.pdf", pdfWithExtras({ note: "A scan" }));
    const daemon = world.daemon({ ...ON, fileTexts: FILE_TEXTS });
    const { planned = [] } = await daemon.syncOnce({ dryRun: true });
    expect(planned.toSorted((a, b) => a.path.localeCompare(b.path))).toMatchObject([
      { path: "a.pdf", action: "create", sends: { chars: "Tide tables".length } },
      { path: "b.pdf", action: "refuse", reason: expect.stringContaining("attachment in it looks like") },
      { path: "c.pdf", action: "refuse", reason: expect.stringContaining("cannot be checked") },
      { path: "d.pdf", action: "create", sends: { isPicture: true } },
    ]);
  });

  it("a dry run says of a PDF that it cannot read that its text is not known", async () => {
    world.write("a.pdf", buildPdf([textPage(["Tide tables"])]));
    const locked = new KbsyncError("the PDF is locked", { code: "any" });
    const daemon = world.daemon({ fileTexts: textsOf(async () => await Promise.reject(locked)) });
    const { planned } = await daemon.syncOnce({ dryRun: true });
    expect(planned).toMatchObject([{ path: "a.pdf", action: "create", reason: "the PDF is locked" }]);
  });

  it("a file with a secret is refused by a dry run with the same words", async () => {
    world.write("a.md", `x ${TOKEN}`);
    const daemon = world.daemon(ON);
    const { planned } = await daemon.syncOnce({ dryRun: true });
    expect(planned).toMatchObject([
      { action: "refuse", reason: expect.stringContaining("line 1 looks like") },
    ]);
  });
});
