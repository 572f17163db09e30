// Takes the pictures of docs/CONSOLE.md and README.md from the built console, over the sample documents (`npm run screenshots`).
// `npm run screenshots -- FOLDER` also takes every page in dark and 320 pixels wide, into that folder.
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import sharp from "sharp";
import { repositoryRoot, send, startUp, statusOf, stop, temporaryFolder, until } from "../../e2e/program.ts";
import { openBrowser, signIn, watchedPage } from "./browser.ts";

/** A picture of a page. */
interface Picture {
  readonly name: string;
  readonly address: string;
  /** Brings the page into the state to show. */
  readonly prepare?: (page: Page) => Promise<void>;
}

const WIDTH = 1200;
const HEIGHT = 760;
/** Further views of every page, whole, to look at. */
const REVIEWED = [
  { suffix: "-dark", width: WIDTH, colorScheme: "dark" },
  { suffix: "-narrow", width: 320, colorScheme: "light" },
  { suffix: "-narrow-dark", width: 320, colorScheme: "dark" },
] as const;
/** Folder for those views; without it there are none. */
const [, , reviewFolder] = process.argv;
const folder = join(repositoryRoot, "docs/console");
const base = temporaryFolder("screenshots");
const docs = join(base.path, "observatory");
const state = join(base.path, "state");
for (const each of [folder, reviewFolder]) if (each !== undefined) mkdirSync(each, { recursive: true });
cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
writeFileSync(join(docs, "scan.pdf"), "%PDF-1.4 a copy that was interrupted");
const config = join(base.path, "kbsync.config.json");
writeFileSync(config, JSON.stringify({ service: { port: 0 }, sources: [{ path: docs }] }));
const papers = join(base.path, "papers");
cpSync(join(repositoryRoot, "sample-docs"), papers, { recursive: true });
mkdirSync(join(papers, ".git"));
for (const name of ["interview.mp3", "draft.md"]) writeFileSync(join(papers, name), "");

const program = await startUp(["up", "--config", config], state);
const browser = await openBrowser();
try {
  const { ownerId, collectionId } = await until("the documents", async () => {
    const source = await statusOf(docs, state);
    return source.searchable >= 7 && source.failed === 1 ? source : undefined;
  });
  const manual =
    "# Cleaning\n\nClean the brewing unit once a week, with water and without soap. Leave it open to dry over night.\n\n" +
    "# Descaling\n\nDescale the machine every three months with the kit from the cupboard. It takes forty minutes.";
  const settings = { chunkSize: 80, chunkOverlap: 30 };
  const ids: string[] = [];
  for (const tier of ["moderate", "high_accuracy"]) {
    const body = { title: "Coffee machine", description: "Manual", content: manual, settings };
    const { json } = await send(program, "POST", "/api/rag/resource", {
      body: JSON.stringify({ ...body, collection_details: tier, owner_id: ownerId }),
    });
    ids.push((json as { data: { _id: string } }).data._id); // checked by `send`
  }
  const search = `/search?owner=${ownerId}&q=how+do+I+clean+the+coffee+machine`;
  const pictures: readonly Picture[] = [
    { name: "overview", address: "/overview" },
    { name: "folder", address: `/folders?path=${encodeURIComponent(docs)}&tab=failed` },
    { name: "add-folder", address: "/folders?new=1", prepare: previewFolder },
    { name: "knowledge", address: "/knowledge" },
    {
      name: "documents",
      address: `/knowledge?collection=${collectionId}&owner=${encodeURIComponent(ownerId)}`,
    },
    { name: "add", address: "/add" },
    { name: "document", address: `/documents/${ids[0]}` },
    { name: "search", address: search },
    { name: "ask", address: "/ask", prepare: askAgent },
    { name: "access", address: "/access" },
  ];
  const views = [
    { suffix: "", width: WIDTH, colorScheme: "light" as const },
    ...(reviewFolder === undefined ? [] : REVIEWED),
  ];
  for (const { suffix, width, colorScheme } of views) {
    const to = suffix === "" ? folder : (reviewFolder ?? folder);
    const viewport = { width, height: HEIGHT };
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
    const { page } = await watchedPage(context);
    await signIn(page, program.url, program.key);
    for (const { name, address, prepare } of pictures) {
      await page.goto(`${program.url}/#${address}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      await prepare?.(page);
      while ((await page.locator(".bones").count()) > 0) await page.waitForTimeout(50);
      const picture = await page.screenshot({ fullPage: suffix !== "" });
      await sharp(picture)
        .webp({ quality: 80 })
        .toFile(join(to, `${name}${suffix}.webp`));
    }
    await context.close();
  }
} finally {
  await browser.close();
  await stop(program);
  base.remove();
}

/** Previews a folder, and brings what was found into view. */
async function previewFolder(page: Page): Promise<void> {
  await page.getByLabel("Folder (required)").fill(papers);
  await page.keyboard.press("Enter");
  const found = page.getByRole("heading", { level: 2 });
  await found.waitFor();
  await found.evaluate((element) => element.scrollIntoView({ block: "center" }));
}

/** Asks a question, and waits for the answer with its sources. */
async function askAgent(page: Page): Promise<void> {
  if ((await page.getByRole("heading", { name: "Sources" }).count()) > 0) return;
  await page.getByLabel("Question").fill("Who may switch off the heater of the mirror?");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sources" }).waitFor();
}
