import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { agreed, type Running, startUp, stop, temporaryFolder } from "../../e2e/program.ts";
import { openBrowser, signIn, violations, type WatchedPage, watchedPage, whyNoBrowser } from "./browser.ts";

describe.skipIf(whyNoBrowser !== "")(`the folders of a configuration${whyNoBrowser}`, () => {
  const base = temporaryFolder("add-folder");
  const config = join(base.path, "kbsync.config.json");
  const state = join(base.path, "state");
  const notes = join(base.path, "notes");
  let browser: Browser;
  let program: Running;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    browser = await openBrowser();
    mkdirSync(join(notes, ".git"), { recursive: true });
    for (let at = 0; at < 25; at += 1) writeFileSync(join(notes, `note-${at}.md`), `# Note ${at}\n\nText.`);
    writeFileSync(join(notes, "song.mp3"), "x");
    writeFileSync(join(notes, "<img src=x onerror=alert(1)>.md"), "# Hostile name\n\nText.");
    writeFileSync(config, `{ "stateDir": "state", "service": { "port": 0 } }`);
    program = await startUp(["up", "--config", config], state);
  });
  afterAll(async () => {
    await browser?.close();
    if (program !== undefined) await stop(program);
    base.remove();
  });
  beforeEach(async () => {
    watched = await watchedPage(await browser.newContext({ viewport: { width: 1280, height: 900 } }));
    page = watched.page;
    await signIn(page, program.url, program.key);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(watched.problems, []);
  });

  it("the folders of a configuration are added by the keyboard alone, from nothing, after a preview", async () => {
    await page.goto(`${program.url}/#/overview`);
    await page.getByRole("link", { name: "Watch a folder" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Add a folder" }).waitFor();
    await page.keyboard.press("Tab"); // the way back
    await page.keyboard.press("Tab");
    await page.keyboard.type("notes");
    await page.keyboard.press("Enter");
    await page.getByText("Enter the whole path").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type(`${notes}/missing`);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("does not exist").waitFor();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type(`${notes}/`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 2, name: "26 files" }).waitFor();
    const leftOut = page.getByRole("list", { name: "Left out" });
    await leftOut
      .getByRole("listitem")
      .filter({ hasText: "a hidden folder" })
      .getByText("1 folder")
      .waitFor();
    await leftOut.getByText(".mp3 is sound").waitFor();
    await page
      .getByRole("list", { name: "The first 20" })
      .getByText("<img src=x onerror=alert(1)>.md")
      .waitFor();
    expect(await violations(page)).toEqual([]);
    // From the heading of the preview, through names and choices, to the button.
    for (let presses = 0; presses < 8; presses += 1) {
      if ((await page.evaluate("document.activeElement.textContent")) === "Add folder") break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "notes" }).waitFor();
    await agreed(notes, state, 26);
    await page.getByText("26 files searchable").waitFor();
    expect(readFileSync(config, "utf8")).toContain(notes);
  });

  it("the folders of a configuration are previewed again when what is left out changes, and refused where they contain the state folder", async () => {
    await page.goto(`${program.url}/#/folders?new=1`);
    await page.getByLabel("Folder (required)").fill(base.path);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("lies inside the source").waitFor();
    await page.getByRole("alert").getByText("Request").waitFor();
    const other = join(base.path, "other");
    mkdirSync(other);
    writeFileSync(join(other, "a.md"), "# A");
    await page.getByLabel("Folder (required)").fill(other);
    await page.keyboard.press("Enter");
    const add = page.getByRole("button", { name: "Add folder" });
    await add.waitFor();
    expect(await add.isEnabled()).toBe(true);
    await page.getByLabel("Leave out").fill("*.md");
    expect(await add.isEnabled()).toBe(false);
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("heading", { level: 2, name: "0 files" }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it("the folders of a configuration are removed with what becomes of their documents, down to none", async () => {
    await page.goto(`${program.url}/#/folders?path=${encodeURIComponent(notes)}`);
    await page.getByRole("button", { name: "Remove…" }).click();
    const dialog = page.getByRole("dialog", { name: "Remove notes?" });
    await dialog.getByRole("radio", { name: "Delete 26 documents" }).check();
    const confirm = dialog.getByRole("button", { name: "Remove folder, delete 26 documents" });
    expect(await confirm.isDisabled()).toBe(true);
    expect(await violations(page)).toEqual([]);
    await dialog.getByLabel("Type 26 to confirm").fill("26");
    await confirm.click();
    await page.getByRole("heading", { name: "No folder is watched" }).waitFor({ timeout: 30_000 });
    expect(await violations(page)).toEqual([]);
    expect(existsSync(join(notes, "note-0.md"))).toBe(true);
    expect(readFileSync(config, "utf8")).not.toContain(notes);
  });
});
