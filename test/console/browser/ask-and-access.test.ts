import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ModelEndpoint, openModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openAsking, OWNER } from "../../kb/chat/asking.ts";
import { createBody } from "../../kb/service/running.ts";
import type { Running } from "../../kb/service/running.ts";
import { builtConsole, openBrowser, signIn, violations, watchedPage, whyNoBrowser } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

/** An answer that tries to leave the text, with one honest reference. */
const ANSWER = [
  "The new crane lifts **forty tons**. [1] And [7] is none.",
  "",
  `<img src=x onerror="alert(1)"><script>alert(2)</script>`,
  "",
  "[press](javascript:alert(3)) ![seen](https://evil.example/seen.png) [web](https://example.com/)",
  "",
  "- one\n- `two`",
].join("\n");

describe.skipIf(whyNoBrowser !== "")(`asking and access in a browser${whyNoBrowser}`, () => {
  let browser: Browser;
  let endpoint: ModelEndpoint;
  let running: Running;
  let key: string;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    browser = await openBrowser();
    endpoint = await openModelEndpoint();
    endpoint.behave = () => ({ kind: "answer", text: ANSWER });
    running = await openAsking(endpoint, {}, { consoleFiles: builtConsole() });
    key = await running.issueKey("local", ["admin"]);
    const content = "# Cranes\n\nThe harbour has two.\n\nThe new crane lifts forty tons.";
    const body = createBody({ title: "Harbour", content, owner_id: OWNER });
    await running.send("POST", "/api/rag/resource", { key, body });
  });
  afterAll(async () => {
    await browser?.close();
    await running?.close();
    await endpoint?.close();
  });
  beforeEach(async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    watched = await watchedPage(context);
    page = watched.page;
    await signIn(page, running.url, key);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(watched.problems, []);
  });
  const open = (address: string): Promise<unknown> => page.goto(`${running.url}/#${address}`);

  describe("the page Ask", () => {
    const question = "What does the new crane lift?";

    it("shows an answer with its sources, and nothing that a model made up to leave the text", async () => {
      await open("/ask");
      await page.getByLabel("Question").fill(question);
      await page.keyboard.press("Enter");
      await page.getByText("forty tons", { exact: true }).waitFor();
      await page.getByRole("heading", { name: "Sources" }).waitFor();
      const card = page.locator(".turns .card");
      expect(await card.locator("img, script, iframe").count()).toBe(0);
      expect(await card.getByText("<img src=x").count()).toBe(1);
      const hrefs = await card
        .locator("a")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      expect(hrefs.filter((href) => href?.startsWith("#/") !== true)).toEqual([
        "https://evil.example/seen.png",
        "https://example.com/",
      ]);
      expect(await violations(page)).toEqual([]);

      await card.getByRole("link", { name: "Source 1: Harbour" }).click();
      await page.getByRole("heading", { level: 1, name: "Harbour" }).waitFor();
      await page.locator(".wanted").first().waitFor();
      await page.goBack();
      await page.locator(".question", { hasText: question }).waitFor();
    });

    it("asks further in the same conversation, and begins another one", async () => {
      await open("/ask");
      await page.getByLabel("Question").fill("And the old one?");
      await page.getByRole("button", { name: "Ask", exact: true }).click();
      await page.getByText("forty tons", { exact: true }).first().waitFor();
      await page.getByRole("button", { name: "New conversation" }).click();
      expect(await page.locator(".turns li").count()).toBe(0);
    });

    it("opens an earlier conversation from its address and its list, asks further, and deletes it", async () => {
      await open("/ask");
      await page.getByLabel("Question").fill("What lifts most, <b>really</b>?");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Sources" }).waitFor();
      await expect.poll(() => page.url()).toContain("thread=console-");
      await page.reload();
      await page.locator(".question", { hasText: "<b>really</b>" }).waitFor();
      await page.getByRole("link", { name: "Source 1: Harbour" }).waitFor();
      await page.getByLabel("Question").fill("And then?");
      await page.keyboard.press("Enter");
      await expect.poll(() => page.locator(".turns > li").count()).toBe(2);
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });

      await page.getByRole("button", { name: "New conversation" }).click();
      await page.getByText("Earlier conversations").click();
      const list = page.getByRole("list", { name: "Earlier conversations" });
      await list.getByRole("link", { name: "really" }).click();
      await expect.poll(() => page.locator(".turns > li").count()).toBe(2);
      expect(await violations(page)).toEqual([]);
      await list.getByRole("button", { name: "really" }).click();
      await page.getByRole("dialog").getByText("2 questions with their answers").waitFor();
      await page.getByRole("button", { name: "Delete the conversation" }).click();
      await list.getByRole("link", { name: "really" }).waitFor({ state: "detached" });
      expect(await page.locator(".turns > li").count()).toBe(0);
    });

    it("says that a conversation of the address is gone", async () => {
      await open("/ask?agent=default&thread=no-such-thread");
      await page.getByRole("alert").getByText("The agent has no thread").waitFor();
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.getByLabel("Question").waitFor();
      expect(page.url()).not.toContain("thread=");
    });

    it("the page Ask can be stopped, and says what an endpoint refuses", async () => {
      await open("/ask");
      endpoint.behave = () => ({ kind: "stall", after: ["The new "] });
      await page.getByLabel("Question").fill(question);
      await page.keyboard.press("Enter");
      await page.getByText("The new", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("You stopped this answer.").waitFor();
      endpoint.behave = () => ({ kind: "fail", status: 400, message: "no such model here" });
      await page.getByLabel("Question").fill(question);
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("no such model here").waitFor();
      expect(await page.locator(".turns > li").count()).toBe(2);
      endpoint.behave = () => ({ kind: "answer", text: ANSWER });
    });
  });

  describe("the page Access", () => {
    it("makes a key that works, is shown once, and ends when it is revoked", async () => {
      await open("/access");
      await page.getByLabel("Name (required)").fill("search page");
      await page.getByRole("button", { name: "Make the key" }).click();
      const dialog = page.getByRole("dialog", { name: "The key “search page”" });
      const made = (await dialog.locator("code").textContent()) ?? "";
      expect(made).toMatch(/^kb_/);
      expect(await violations(page)).toEqual([]);
      const owners = (): Promise<number> =>
        running.send("GET", "/api/rag/owners", { key: made }).then(({ status }) => status);
      expect(await owners()).toBe(200);
      await dialog.getByRole("button", { name: "Done" }).click();
      expect(await page.getByText(made).count()).toBe(0);

      await page.getByRole("button", { name: "Revoke search page" }).click();
      await page.getByRole("button", { name: "Revoke the key" }).click();
      await page.getByText("revoked", { exact: true }).waitFor();
      expect(await owners()).toBe(401);
    });

    it("adds an address for events, tries it, and deletes it", async () => {
      await open("/access?tab=webhooks");
      await page.getByText("No address receives events").waitFor();
      await page.getByLabel("URL (required)").fill(`http://127.0.0.1:9/hooks`);
      await page.getByRole("button", { name: "Add the address" }).click();
      const dialog = page.getByRole("dialog", { name: "The secret of the signatures" });
      expect(await dialog.locator("code").textContent()).toMatch(/^whsec_/);
      await dialog.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Send a test" }).click();
      await page.getByText("It did not arrive").waitFor();
      await page.getByRole("button", { name: "New secret" }).click();
      expect(await dialog.locator("code").textContent()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      await dialog.getByRole("button", { name: "Done" }).click();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("button", { name: "Delete the address" }).click();
      await page.getByText("No address receives events").waitFor();
    });
  });
});
