import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Ended, kbsync, temporaryFolder } from "./program.ts";

const temporary = temporaryFolder("trash");
let base: string;
let count = 0;
beforeEach(() => {
  base = join(temporary.path, `case-${++count}`);
  mkdirSync(join(base, "docs"), { recursive: true });
});
afterAll(() => temporary.remove());

const configure = (...sources: readonly Record<string, unknown>[]): void =>
  writeFileSync(
    join(base, "kbsync.config.json"),
    JSON.stringify({
      service: { port: 0 },
      stateDir: "state",
      sources,
      sync: { trashDays: 3 },
    }),
  );
const run = async (...args: readonly string[]): Promise<Ended> => kbsync(args, { cwd: base });
const docs = (name: string): string => join(base, "docs", name);
const Texts = z.object({ texts: z.array(z.object({ path: z.string(), isExact: z.boolean() })) });
const Removed = z.object({ removed: z.array(z.object({ path: z.string(), resources: z.number() })) });

/** Agrees to what is held of a folder, by the token that the program shows. */
const approve = async (folder: string): ReturnType<typeof run> => {
  const { stdout } = await run("approve", folder);
  return run("approve", "--token", /--token (\w+)/.exec(stdout)?.[1] ?? "none");
};

describe("the whole program", () => {
  it("puts deleted files back from its own service, whatever port that has by now", async () => {
    configure({ path: "docs" });
    const pdf = Buffer.from(
      "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
        "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n" +
        "4 0 obj<</Length 37>>stream\nBT /F 12 Tf 9 9 Td (Hello there) Tj ET\nendstream endobj\n" +
        "5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
    );
    writeFileSync(docs("paper.pdf"), pdf);
    writeFileSync(docs("a.md"), "# Alpha\n\nSome text, and spaces at the end   \n\n");
    writeFileSync(
      docs("latin.txt"),
      Buffer.from("Stra\xdfe und Gr\xfc\xdfe f\xfcr alle \xc4rzte\n", "latin1"),
    );
    writeFileSync(docs("stays.txt"), "stays");
    expect(await run("sync")).toMatchObject({ code: 0 });
    for (const name of ["paper.pdf", "a.md", "latin.txt"]) rmSync(docs(name));
    expect(await run("sync")).toMatchObject({ code: 0 });

    const { texts } = Texts.parse(JSON.parse((await run("undelete", "--list", "--json")).stdout));
    expect(texts.map(({ path, isExact }) => `${path.slice(base.length)} ${isExact}`).toSorted()).toEqual([
      "/docs/a.md true",
      "/docs/latin.txt false",
      "/docs/paper.pdf true",
    ]);
    const back = await run("undelete", "docs");
    expect([back.code, back.stdout.match(/^restored /gm)?.length]).toEqual([0, 3]);
    expect(back.stdout).toContain("its text as UTF-8");
    expect(
      createHash("sha256")
        .update(readFileSync(docs("paper.pdf")))
        .digest("hex"),
    ).toBe(createHash("sha256").update(pdf).digest("hex"));
    expect(readFileSync(docs("latin.txt"), "utf8")).toBe("Straße und Grüße für alle Ärzte\n");
    expect(await run("sync")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/4 files searchable, 3 changes/) as string,
    });

    expect(await run("undelete", "docs/a.md")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/there is a file/) as string,
    });
    expect(await run("undelete", "docs/stays.txt")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the trash has no text/) as string,
    });
    expect(await run("undelete", "/elsewhere")).toMatchObject({ code: 2 });
    expect(await run("undelete")).toMatchObject({ code: 2 });
  });

  it("keeps the resources of a source that left the configuration until a person agrees by its name", async () => {
    mkdirSync(join(base, "other"));
    writeFileSync(join(base, "other", "x.txt"), "x");
    writeFileSync(docs("a.txt"), "a");
    configure({ path: "docs" }, { path: "other" });
    expect(await run("sync")).toMatchObject({ code: 0 });
    configure({ path: "docs" });
    const pass = await run("sync");
    expect([pass.code, pass.stdout]).toEqual([
      0,
      expect.stringContaining("/other: no longer synced; its 1 document is still searchable") as string,
    ]);
    expect(Removed.parse(JSON.parse((await run("status", "--json")).stdout)).removed).toMatchObject([
      { path: join(base, "other"), resources: 1 },
    ]);
    expect((await run("approve")).stdout).toBe("nothing is held\n");
    rmSync(join(base, "other"), { recursive: true });
    expect(await approve("other")).toMatchObject({ code: 0 });
    expect(await run("sync")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 change") as string,
    });
    expect((await run("status")).stdout).not.toContain("other");
    // The last one, too.
    configure();
    expect(await run("sync")).toMatchObject({ code: 0 });
    expect(await approve("docs")).toMatchObject({ code: 0 });
    expect(await run("sync")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 change") as string,
    });
    expect(existsSync(docs("a.txt"))).toBe(true);
  });

  it("refuses a word on a missing folder with the status of a missing folder", async () => {
    writeFileSync(docs("a.txt"), "a");
    configure({ path: "docs" });
    await run("sync");
    renameSync(join(base, "docs"), join(base, "away"));
    expect(await run("sync")).toMatchObject({ code: 4 });
    expect(await run("approve", "docs")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("nobody can approve that") as string,
    });
  });
});
