// Takes the pictures of docs/CONSOLE.md and README.md from the built console, over the sample documents (`npm run screenshots`).
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { repositoryRoot, send, startUp, statusOf, stop, temporaryFolder, until } from "../../e2e/program.ts";
import { openBrowser, signIn, watchedPage } from "./browser.ts";

const WIDTH = 1200;
const folder = join(repositoryRoot, "docs/console");
const base = temporaryFolder("screenshots");
const docs = join(base.path, "observatory");
const state = join(base.path, "state");
mkdirSync(folder, { recursive: true });
cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
writeFileSync(join(docs, "scan.pdf"), "%PDF-1.4 a copy that was interrupted");

const program = await startUp(["up", docs, "--port", "0"], state);
const browser = await openBrowser();
try {
  const { ownerId } = await until("the documents", async () => {
    const source = await statusOf(docs, state);
    return source.inAgreement >= 7 && source.failed === 1 ? source : undefined;
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
  const { page } = await watchedPage(
    await browser.newContext({ viewport: { width: WIDTH, height: 760 }, reducedMotion: "reduce" }),
  );
  await signIn(page, program.url, program.key);
  const source = encodeURIComponent(docs);
  const pages = {
    overview: "/overview",
    folder: `/folders?path=${source}&tab=failed`,
    add: "/add",
    document: `/documents/${ids[0]}`,
    search: `/search?owner=${ownerId}&q=how+do+I+clean+the+coffee+machine`,
    ask: "/ask",
    access: "/access",
  };
  for (const [name, address] of Object.entries(pages)) {
    await page.goto(`${program.url}/#${address}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    if (name === "ask") {
      await page.getByLabel("Question").fill("Who may switch off the heater of the mirror?");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Sources" }).waitFor();
    }
    while ((await page.locator(".bones").count()) > 0) await page.waitForTimeout(50);
    const picture = await page.screenshot();
    await sharp(picture)
      .webp({ quality: 80 })
      .toFile(join(folder, `${name}.webp`));
  }
} finally {
  await browser.close();
  await stop(program);
  base.remove();
}
