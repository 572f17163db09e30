import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { agreed, kbsync, startProgram, stop, temporaryFolder, until } from "../../e2e/program.ts";
import type { Started } from "../../e2e/program.ts";
import { openBrowser, violations, watchedPage, whyNoBrowser } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const LINK = /^ {2}console +(http:\S+)/m;

describe.skipIf(whyNoBrowser !== "")(`the console of kbsync up${whyNoBrowser}`, () => {
  const base = temporaryFolder("console");
  const folder = join(base.path, "manuals");
  const state = join(base.path, "state");
  let browser: Browser;
  let program: Started;
  let link: string;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    browser = await openBrowser();
    mkdirSync(folder);
    writeFileSync(join(folder, "pump.md"), "# Pump\n\nThe pump runs dry without oil.");
    writeFileSync(join(folder, "valve.md"), "# Valve\n\nTurn the valve to the left.");
    program = startProgram(["up", folder, "--tier", "fastest", "--state-dir", state, "--port", "0"]);
    link = await until("a link to the console", () => LINK.exec(program.output.stdout)?.[1]);
    await agreed(folder, state, 2);
  });
  afterAll(async () => {
    await browser?.close();
    if (program !== undefined) await stop(program);
    base.remove();
  });
  beforeEach(async () => {
    watched = await watchedPage(await browser.newContext({ viewport: { width: 1280, height: 900 } }));
    page = watched.page;
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(watched.problems, []);
  });

  /** Signs in with a link of `kbsync key link`. */
  const open = async (address: string): Promise<void> => {
    const { stdout } = await kbsync(["key", "link", "--state-dir", state]);
    await page.goto(stdout.trim());
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await page.goto(`${new URL(stdout.trim()).origin}/#${address}`);
  };
  const filesNow = (): number => readdirSync(folder).length;
  const folderPage = (tab: string): string => `/folders?path=${encodeURIComponent(folder)}&tab=${tab}`;

  it("signs in with the printed link, and says in one sentence that all is well", async () => {
    await page.goto(link);
    await page.getByRole("heading", { level: 1, name: "All 2 files are searchable" }).waitFor();
    await page.getByRole("link", { name: "manuals" }).waitFor();
    expect(page.url()).not.toContain("link=");
    expect(await violations(page)).toEqual([]);
  });

  it("the console of kbsync up leads from a file that failed to its reason, and to the end of it", async () => {
    const broken = join(folder, "broken.pdf");
    writeFileSync(broken, "%PDF-1.4 broken");
    await open("/overview");
    // Before that, a document of the service has failed.
    await page.getByText("1 file of manuals failed").waitFor({ timeout: 30_000 });
    await page.getByRole("heading", { level: 1, name: "1 thing needs you" }).waitFor();
    await page.getByRole("link", { name: "See why" }).click();
    await page.getByText("The PDF is damaged").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Why: broken.pdf" }).click();
    const dialog = page.getByRole("dialog", { name: "broken.pdf" });
    await dialog.getByText("It has no document.").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Retry broken.pdf" }).click();
    await page.getByText("1 file tried again.").waitFor();
    rmSync(broken);
    await page.getByRole("heading", { name: "No file failed" }).waitFor({ timeout: 30_000 });
    await open("/overview");
    await page.getByRole("heading", { level: 1, name: "All 2 files are searchable" }).waitFor();
  });

  it("lists the files that the service is still reading among those that wait", async () => {
    await open("/overview");
    const status = await page.evaluate<{ sources: object[] }>(
      'fetch("/v1/daemon/status").then((answer) => answer.json())',
    );
    const sources = status.sources.map((source) => ({ ...source, reading: 2 }));
    await page.route("**/v1/daemon/status*", (route) => route.fulfill({ json: { ...status, sources } }));
    const file = {
      source: folder,
      state: "reading",
      docId: null,
      code: "reading",
      sinceMs: null,
      hasOlder: false,
    };
    const message = "the service is reading it";
    const files = ["long.pdf", "scan.pdf"].map((path) => Object.assign({}, file, { path, message }));
    Object.assign(files[1] ?? {}, { hasOlder: true });
    await page.route("**/v1/daemon/files?*state=reading*", (route) =>
      route.fulfill({ json: { files, deleted: [] } }),
    );
    await page.goto(`${new URL(page.url()).origin}/#${folderPage("waiting")}`);
    const list = page.getByRole("list", { name: "Waiting files" });
    await list.getByText("long.pdf").waitFor();
    expect(await list.getByText("reading it; an older version is searchable").count()).toBe(1);
    await page.getByText("2 files", { exact: true }).waitFor();
    expect(await list.getByRole("button", { name: /^Retry/ }).count()).toBe(0);
    expect(await list.getByRole("button", { name: /^Why/ }).count()).toBe(2);
  });

  it("pauses and resumes a folder, and shows what happens in it as it happens", async () => {
    await open(folderPage("activity"));
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused").waitFor();
    writeFileSync(join(folder, "seal.md"), "# Seal\n\nGrease the seal.");
    await page.getByRole("link", { name: "Waiting (1)" }).waitFor({ timeout: 30_000 });
    await open("/search?q=pump");
    await page.getByText("Not complete 1 waiting.").waitFor();
    await open(folderPage("activity"));
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Searchable", { exact: true }).waitFor();
    const row = page
      .getByRole("list", { name: "Activity" })
      .getByRole("listitem")
      .filter({ hasText: "seal.md" });
    await row.getByText("Added").waitFor({ timeout: 30_000 });
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByRole("dialog", { name: "Everything is as it should be" }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it("restores a deleted file from the trash", async () => {
    const file = join(folder, "valve.md");
    await agreed(folder, state, filesNow());
    rmSync(file);
    await agreed(folder, state, filesNow());
    await open(folderPage("trash"));
    await page.getByRole("list", { name: "Deleted files" }).getByText("valve.md").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Restore" }).first().click();
    await page.getByText(/is back\.$/).waitFor();
    expect(existsSync(file)).toBe(true);
  });

  it("leaves a document of a folder to its file", async () => {
    await agreed(folder, state, filesNow());
    await open("/search?q=pump");
    await page.getByRole("link", { name: "Pump" }).click();
    await page.getByText("Edit the file instead").waitFor();
    await page.getByText(join(folder, "pump.md")).waitFor();
    expect(await page.getByRole("button", { name: "Edit" }).count()).toBe(0);
  });

  it("approves held deletes only after their number is typed", async () => {
    const names = Array.from({ length: 40 }, (_, at) => join(folder, `page-${at}.md`));
    for (const name of names) writeFileSync(name, `# ${name}\n\nA page.`);
    await agreed(folder, state, filesNow());
    for (const name of names) rmSync(name);
    await open(folderPage("held"));
    const approve = page.getByRole("button", { name: "Approve 40 deletes…" });
    await approve.waitFor({ timeout: 30_000 });
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("40 deletes of manuals wait for your approval").waitFor();
    await page.getByRole("link", { name: "Review" }).click();
    await approve.click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Approve 40 deletes" });
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel("Type 40 to confirm").fill("40");
    await confirm.click();
    await page.getByRole("heading", { name: "No delete is held" }).waitFor({ timeout: 30_000 });
    expect((await agreed(folder, state, filesNow())).held).toBe(0);
  });
});
