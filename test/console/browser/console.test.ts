import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createBody, createMany, openRunning } from "../../kb/service/running.ts";
import type { Running } from "../../kb/service/running.ts";
import { builtConsole, openBrowser, signIn, violations, watchedPage, whyNoBrowser } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const ATTACK = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

describe.skipIf(whyNoBrowser !== "")(`the console in a browser${whyNoBrowser}`, () => {
  let browser: Browser;
  let elsewhere: Server;
  let otherUrl: string;
  let running: Running;
  let key: string;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    browser = await openBrowser(["evil.example"]);
    elsewhere = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<title>Tides</title><main><h1>Tides</h1><p>The moon pulls the sea.</p></main>");
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    otherUrl = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
    running = await openRunning({ consoleFiles: builtConsole(), fetchAllow: ["127.0.0.1"] });
    key = await running.issueKey("local", ["admin"]);
  });
  afterAll(async () => {
    await browser?.close();
    elsewhere?.close();
    await running?.close();
  });
  beforeEach(async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    watched = await watchedPage(context);
    page = watched.page;
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(watched.problems, []);
  });

  const create = async (change: object): Promise<string> =>
    (await running.send("POST", "/api/rag/resource", { key, body: createBody(change) })).json.data._id;
  const open = (address: string): Promise<unknown> => page.goto(`${running.url}/#${address}`);
  /** A test that is tried again starts with documents of its own. */
  const newOwner = (name: string): string => `${name}-${Date.now()}`;
  const scopeOf = async (ownerId: string): Promise<string> => {
    const { json } = await running.send("GET", "/api/rag/owners?limit=1000", { key });
    const owner = json.data.owners.find((each: { ownerId: string }) => each.ownerId === ownerId);
    return `/knowledge?collection=${owner.collectionId}&owner=${ownerId}`;
  };

  describe("signing in", () => {
    it("takes a key, and leaves it nowhere in the browser", async () => {
      await page.goto(running.url);
      await page.getByLabel("Key (required)").fill("kb_wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").getByText("Request").waitFor();
      await page.getByLabel("Key (required)").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      const stored = await page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])",
      );
      expect(stored).toBe('[{},{},""]');
    });

    it("takes a link once, and removes it from the address", async () => {
      await signIn(page, running.url, key);
      expect(page.url()).not.toContain("link=");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to kbsync" }).waitFor();
      expect(await violations(page)).toEqual([]);
    });

    it("takes a link that is opened in a tab that shows the console already", async () => {
      const link = async (): Promise<string> => {
        const { json } = await running.send("POST", "/console/links", { key });
        return `${running.url}/#link=${json.data.token}`;
      };
      await page.goto(running.url);
      await page.getByRole("heading", { name: "Sign in to kbsync" }).waitFor();
      await page.goto(await link());
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      // Also where somebody is signed in.
      await page.goto(await link());
      await expect.poll(() => page.url()).not.toContain("link=");
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect(await page.getByText("No such page").count()).toBe(0);
    });

    it("signing in can be put off when the session ends, and taken up again", async () => {
      const made = await running.send("POST", "/v1/keys", { key, body: { name: "short", scopes: ["read"] } });
      await signIn(page, running.url, made.json.data.key);
      await running.send("DELETE", `/v1/keys/${made.json.data._id}`, { key });
      await open("/knowledge");
      const dialog = page.getByRole("dialog", { name: "Your session has ended" });
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      const line = page.getByRole("status").filter({ hasText: "Your session has ended" });
      expect(await violations(page)).toEqual([]);
      await line.getByRole("button", { name: "Sign in" }).click();
      await dialog.getByLabel("Key (required)").fill(key);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("link", { name: "Add documents" }).first().waitFor();
      expect(await line.count()).toBe(0);
    });

    it("asks again where a person is when the session ends, and loses nothing typed", async () => {
      const made = await running.send("POST", "/v1/keys", {
        key,
        body: { name: "short", scopes: ["read", "write"] },
      });
      await signIn(page, running.url, made.json.data.key);
      await open("/add");
      await page.getByRole("radio", { name: "Content" }).check();
      await page.getByLabel("Name (required)").fill("Kept");
      await page.getByLabel("Description (required)").fill("What was typed");
      await page.getByLabel("Text (required)").fill("A walrus sleeps.");
      await running.send("DELETE", `/v1/keys/${made.json.data._id}`, { key });
      await page.getByRole("button", { name: "Add document" }).click();
      const dialog = page.getByRole("dialog", { name: "Your session has ended" });
      await dialog.getByLabel("Key (required)").fill(key);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "1 document added", exact: true }).waitFor();
      expect(await page.getByRole("dialog").count()).toBe(0);
    });
  });

  describe("adding documents", () => {
    beforeEach(async () => {
      await signIn(page, running.url, key);
      await open("/add");
      await page.getByRole("heading", { level: 1, name: "Add documents" }).waitFor();
    });
    /** Searches, and returns the number of results with this title. */
    const find = async (question: string, title: string): Promise<number> => {
      await open("/search");
      await page.getByLabel("Question").fill(question);
      await page.getByRole("button", { name: "Search", exact: true }).click();
      const found = page.getByRole("link", { name: title });
      await found.first().waitFor();
      return found.count();
    };

    it("takes a text by the keyboard alone, which search then finds", async () => {
      // From the heading that has the focus, through the form, to the button.
      await page.getByRole("heading", { level: 1 }).focus();
      await page.keyboard.press("Tab");
      await page.keyboard.type("Lighthouse keeping");
      await page.keyboard.press("Tab");
      await page.keyboard.type("How a lamp is kept burning");
      await page.keyboard.press("Tab");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Tab");
      await page.keyboard.type("Trim the wick at dusk.");
      await page.keyboard.press("Tab"); // the retrieval preference
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("Tab"); // advanced
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByText("Searchable", { exact: true }).waitFor();
      expect(await find("wick", "Lighthouse keeping")).toBe(1);
    });

    it("takes several files, each with its own end", async () => {
      await page.getByLabel("Description (required)").fill("Two files");
      await page.getByRole("radio", { name: "Upload File" }).check();
      await page.getByLabel("Files (required)").setInputFiles([
        { name: "penguins.md", mimeType: "text/markdown", buffer: Buffer.from("Penguins huddle in winter.") },
        { name: "broken.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 broken") },
      ]);
      await page.getByText("penguins.md").waitFor();
      await page.getByRole("button", { name: "Add 2 documents" }).click();
      const added = page.getByRole("region", { name: "Added documents" });
      await added.getByRole("alert").getByText("Request").waitFor();
      await added.getByRole("link", { name: "penguins" }).waitFor();
      await added.getByRole("button", { name: "Try again" }).waitFor();
      expect(await page.getByText("penguins.md").count()).toBe(0);
      expect(await violations(page)).toEqual([]);
      expect(await find("huddle", "penguins")).toBe(1);
    });

    it("takes an address", async () => {
      await page.getByLabel("Name (required)").fill("A page on tides");
      await page.getByLabel("Description (required)").fill("The sea");
      await page.getByLabel("Address (required)").fill(`${otherUrl}/tides`);
      await page.getByRole("button", { name: "Add document" }).click();
      await page.getByRole("region", { name: "Added documents" }).getByText("Searchable").waitFor();
      expect(await find("moon", "A page on tides")).toBe(1);
    });

    it("says what is missing beside each field, and sends nothing", async () => {
      await page.getByRole("button", { name: "Add document" }).click();
      for (const text of ["Enter a name.", "Enter a description."]) await page.getByText(text).waitFor();
      await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("INPUT");
      expect(await page.getByRole("region", { name: "Added documents" }).count()).toBe(0);
      expect(await violations(page)).toEqual([]);
    });
  });

  describe("the list of documents", () => {
    it("filters, selects and deletes many, and names the number before", async () => {
      const owner_id = newOwner("seals");
      for (const name of ["one", "two", "three", "other"])
        await create({ title: `Seal ${name}`, content: `A seal, ${name}.`, owner_id });
      await signIn(page, running.url, key);
      await open(await scopeOf(owner_id));
      await page.getByText("4 documents").waitFor();
      await page.getByRole("searchbox").fill("seal other");
      await page.getByRole("row", { name: /Seal other/ }).waitFor();
      expect(page.url()).toContain("q=seal+other");
      expect(await violations(page)).toEqual([]);
      // The line below a title says more than the title, or is not there.
      expect(
        await page
          .getByRole("row", { name: /Seal other/ })
          .locator(".small.muted")
          .count(),
      ).toBe(2);
      // The box stays checked, and has the focus, while the service answers late and the list changes.
      let answer = (): void => {};
      await page.route(/\/documents\?.*limit=1000$/, async (route) => {
        await new Promise<void>((resolve) => (answer = resolve));
        await route.continue();
      });
      const selectAll = page.getByRole("checkbox", { name: /Select all/ });
      await selectAll.focus();
      await page.keyboard.press("Space");
      await page.locator("input[aria-busy=true]:focus").waitFor();
      await page.keyboard.press("Space");
      const reloaded = page.waitForResponse(/\/documents\?.*limit=100$/);
      await create({ title: "Seal five", content: "A seal, five.", owner_id });
      await reloaded;
      await pause(200);
      expect(await selectAll.isChecked()).toBe(true);
      answer();
      await page.getByText("1 document selected").waitFor();
      await page.getByRole("button", { name: "Delete…" }).click();
      const number = await page.getByRole("dialog").getByRole("heading").innerText();
      await page.getByRole("button", { name: number.replace("?", "") }).click();
      await page
        .getByRole("status")
        .getByText(/^Deleted/)
        .waitFor();
      await page.getByRole("searchbox").fill("");
      await expect
        .poll(() => page.getByRole("row", { name: /Seal/ }).count())
        .toBe(5 - Number(/\d/.exec(number)));
    });

    it("deletes one after another, shows the progress and can be stopped", async () => {
      const owner_id = newOwner("cods");
      const bodies = Array.from({ length: 1500 }, (_, at) =>
        createBody({ title: `Cod ${at}`, owner_id, collection_details: "fastest" }),
      );
      await createMany(running, bodies, key);
      await signIn(page, running.url, key);
      await open(await scopeOf(owner_id));
      await page.getByText("1,500 documents").waitFor();
      await page.getByRole("checkbox", { name: "Select all 1,500" }).check();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByLabel("Type 1,500 to confirm").fill("1500");
      await page.getByRole("button", { name: "Delete 1,500 documents" }).click();
      await page.getByText(/^Deleting \d/).waitFor();
      await page.getByRole("link", { name: "Overview" }).first().click();
      await page.getByText(/^Deleting \d/).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText(/^Deleted .* stopped with/).waitFor();
      // Not before: on a busy machine the check takes longer than the deletes.
      expect(await violations(page)).toEqual([]);
      const at = new URLSearchParams((await scopeOf(owner_id)).split("?")[1]);
      const query = `collectionId=${at.get("collection")}&ownerId=${owner_id}`;
      const { data } = (await running.send("GET", `/api/rag/documents?${query}`, { key })).json;
      expect(data.total).toBeGreaterThan(0);
    }, 60_000);

    it("follows what others change", async () => {
      const owner_id = newOwner("live");
      await create({ title: "Live one", owner_id });
      await signIn(page, running.url, key);
      await open(await scopeOf(owner_id));
      await page.getByText("1 document", { exact: false }).first().waitFor();
      await create({ title: "Live two", owner_id });
      await page.getByRole("row", { name: /Live two/ }).waitFor();
      expect(await page.getByRole("row", { name: /Live/ }).count()).toBe(2);
    });

    it("shows ten thousand, of which only the visible ones exist", async () => {
      const owner_id = newOwner("herrings");
      const bodies = Array.from({ length: 10_000 }, (_, at) =>
        createBody({
          title: `Herring ${at}`,
          content: "A fish.",
          owner_id,
          collection_details: "fastest",
        }),
      );
      await createMany(running, bodies, key);
      await signIn(page, running.url, key);
      await open(await scopeOf(owner_id));
      await page.getByText("10,000 documents").waitFor({ timeout: 30_000 });
      await page.locator("[aria-rowindex='2']", { hasText: "Herring" }).waitFor();
      expect(await page.getByRole("row").count()).toBeLessThan(60);
      await page.locator(".rows-view").evaluate((view) => view.scrollTo(0, view.scrollHeight));
      await page.locator("[aria-rowindex='10001']", { hasText: "Herring" }).waitFor();
      expect(await page.getByRole("row", { name: "Loading" }).count()).toBe(0);
      await page.getByRole("searchbox").fill("herring 9998");
      await expect.poll(() => page.getByRole("row", { name: /Herring/ }).count()).toBe(1);
    }, 120_000);
  });

  describe("one document", () => {
    it("shows its chunks, and takes an edit that search then finds", async () => {
      const owner_id = newOwner("otters");
      const content =
        "# Otters\n\nOtters hold hands asleep.\n\n# Food\n\nThey eat urchins and crabs at dawn.";
      const id = await create({
        title: "Otters",
        content,
        owner_id,
        settings: { chunkSize: 45, chunkOverlap: 15 },
      });
      await signIn(page, running.url, key);
      await open(`/documents/${id}`);
      await page.getByRole("heading", { level: 1, name: "Otters" }).waitFor();
      expect(await page.locator(".document-text").textContent()).toContain("They eat urchins");
      expect(await page.locator(".document-text .chunk-number").count()).toBeGreaterThan(1);
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Chunk size").fill("30");
      await page.getByLabel("Text (required)").fill("Otters juggle stones.");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Version").locator("..").getByText("2, with 1 chunk").waitFor();
      await open(`/search?q=juggle&owner=${owner_id}`);
      await page.getByRole("link", { name: "Otters" }).waitFor();
    });

    it("hides the marker of a description, and keeps it when the description is edited or cleared", async () => {
      const marker = "[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]";
      const owner_id = newOwner("voles");
      const id = await create({ title: "Voles", description: `They dig ${marker}`, owner_id });
      const stored = async () =>
        (await running.send("GET", `/api/rag/resource/${id}`, { key })).json.data.description;
      await signIn(page, running.url, key);
      await open(await scopeOf(owner_id));
      await page.getByRole("row", { name: /Voles/ }).getByText("They dig", { exact: true }).waitFor();
      await open(`/documents/${id}`);
      await page.getByText("They dig", { exact: true }).waitFor();
      for (const [text, description] of [
        ["They burrow", `They burrow ${marker}`],
        ["", marker],
      ] as const) {
        await page.getByRole("button", { name: "Edit" }).click();
        expect(await page.getByLabel("Description").inputValue()).not.toContain("[kb:");
        await page.getByLabel("Description").fill(text);
        await page.getByRole("button", { name: "Save" }).click();
        await expect.poll(stored).toBe(description);
        await page.getByLabel("Description").waitFor({ state: "detached" });
      }
      await expect.poll(() => page.getByText("They burrow").count()).toBe(0);
      expect(await page.getByText("[kb:").count()).toBe(0);
    });

    it("one document is deleted after a question that says what goes", async () => {
      const id = await create({ title: "A walrus", owner_id: "walruses" });
      await signIn(page, running.url, key);
      await open(`/documents/${id}`);
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByRole("button", { name: "Delete 1 document" }).click();
      await page.getByText("Deleted “A walrus”.").waitFor();
      expect((await running.send("GET", `/api/rag/resource/${id}`, { key })).json.data.isDeleted).toBe(true);
    });
  });

  it("searches every collection of an owner, and hides what scores too low", async () => {
    const owner_id = newOwner("puffins");
    for (const tier of ["fastest", "high_accuracy"])
      await create({
        title: "Puffins",
        content: "Puffins nest in burrows.",
        owner_id,
        collection_details: tier,
      });
    await signIn(page, running.url, key);
    await open(`/search?owner=${owner_id}&q=burrow+nests`);
    const fastest = page.getByRole("region", { name: "Results of Fastest" });
    await page.getByRole("region", { name: "Results of High accuracy" }).getByText("Puffins nest").waitFor();
    await fastest.locator("article", { hasText: "Puffins nest in burrows." }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("slider").fill("1");
    await page.getByText("All results are below the lowest score").first().waitFor();
    expect(page.url()).toContain("min=1");
    await page.getByRole("searchbox").fill("zeppelin");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Nothing found" }).first().waitFor();
  });

  it("searches the owner that the address names, and no other in its place", async () => {
    await create({ title: "Of nobody", content: "A lonely albatross.", collection_details: "high_accuracy" });
    await create({
      title: "Of an owner",
      content: "A lonely albatross.",
      owner_id: "aaa",
      collection_details: "fastest",
    });
    await signIn(page, running.url, key);
    await open("/search?q=albatross&owner=gone");
    await page.getByRole("heading", { name: "This owner has no documents" }).waitFor();
    expect(await page.getByRole("link", { name: "Of an owner" }).count()).toBe(0);
    await page.getByLabel("Owner").selectOption("aaa");
    await page.getByRole("link", { name: "Of an owner" }).waitFor();
    await page.getByLabel("Owner").selectOption({ label: "No owner" });
    await page.getByRole("link", { name: "Of nobody" }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: "Of nobody" }).waitFor();
    expect(await page.getByRole("link", { name: "Of an owner" }).count()).toBe(0);
  });

  it("keeps a question that is typed as soon as the page is there", async () => {
    await create({ title: "Quick", owner_id: "quick" });
    await signIn(page, running.url, key);
    await page.evaluate(`new MutationObserver((_changes, observer) => {
      const input = document.querySelector(".search-form input[type=search]");
      if (input === null) return;
      observer.disconnect();
      input.value = "typed at once";
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }).observe(document.body, { childList: true, subtree: true })`);
    await open("/search");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await expect.poll(() => page.url()).toContain("q=typed+at+once");
  });

  it("shows hostile titles, texts and metadata as text", async () => {
    const id = await create({
      title: ATTACK,
      description: ATTACK,
      content: `# ${ATTACK}\n\n${ATTACK} xylophone`,
      owner_id: ATTACK,
      metadata: { [ATTACK]: ATTACK, path: `${ATTACK}.md` },
    });
    await signIn(page, running.url, key);
    const addresses = [
      "/knowledge",
      await scopeOf(ATTACK).then((address) => address.replace(ATTACK, encodeURIComponent(ATTACK))),
      `/documents/${id}`,
      `/search?q=xylophone&owner=${encodeURIComponent(ATTACK)}`,
    ];
    for (const address of addresses) {
      await open(address);
      await page.getByText(ATTACK).locator("visible=true").first().waitFor();
      expect(await page.locator("main img, main script").count()).toBe(0);
    }
  });

  it("carries on when the service comes back", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-console-"));
    const options = { stateDir, consoleFiles: builtConsole() };
    const first = await openRunning(options);
    const admin = await first.issueKey("local", ["admin"]);
    await signIn(page, first.url, admin);
    await page.goto(`${first.url}/#/add`);
    await page.getByLabel("Name (required)").fill("Through a restart");
    await page.getByLabel("Description (required)").fill("It waits");
    await page.getByRole("radio", { name: "Content" }).check();
    await page.getByLabel("Text (required)").fill("A heron waits.");
    await first.close();
    await page.getByRole("button", { name: "Add document" }).click();
    await page.getByText("The service does not answer since").waitFor();
    const second = await openRunning({ ...options, port: Number(new URL(first.url).port) });
    await page.getByRole("heading", { name: "1 document added", exact: true }).waitFor({ timeout: 30_000 });
    await expect.poll(() => page.getByText("The service does not answer since").count()).toBe(0);
    await second.close();
    await rm(stateDir, { recursive: true });
  });

  describe("another page", () => {
    it("another page cannot act with the browser's session", async () => {
      const id = await create({ title: "Stays" });
      await signIn(page, running.url, key);
      await page.goto(otherUrl);
      const outcome = await page.evaluate(
        async ([url, path]) => {
          const tries = [
            fetch(`${url}${path}`, { method: "DELETE", credentials: "include" }),
            fetch(`${url}/v1/keys`, { credentials: "include", mode: "no-cors" }).then(
              (answer) => answer.type,
            ),
            fetch(`${url}/v1/keys`, {
              method: "POST",
              credentials: "include",
              mode: "no-cors",
              body: "{}",
            }).then((answer) => answer.type),
          ];
          const ended = await Promise.allSettled<unknown>(tries);
          return ended.map((each) => (each.status === "fulfilled" ? each.value : "refused"));
        },
        [running.url, `/api/rag/resource/${id}`] as const,
      );
      expect(outcome).toEqual(["refused", "opaque", "opaque"]);
      expect((await running.send("GET", `/api/rag/resource/${id}`, { key })).json.data.isDeleted).toBe(false);
      const keys = await running.send("GET", "/v1/keys", { key });
      expect(keys.json.data.keys.filter((each: { name: string }) => each.name === "")).toEqual([]);
      // The console itself still may.
      expect((watched.problems as string[]).splice(0).every((text) => text.includes("CORS"))).toBe(true);
    });

    it("another page cannot show the console in a frame", async () => {
      await page.goto(otherUrl);
      await page.evaluate(`document.body.innerHTML = '<iframe src="${running.url}"></iframe>'`);
      await expect.poll(() => (watched.problems as string[]).splice(0).join()).toContain("frame-ancestors");
    });

    it("another page cannot reach the console by a name that leads to this machine", async () => {
      const answer = await page.goto(running.url.replace("127.0.0.1", "evil.example"));
      expect(answer?.status()).toBe(421);
      expect(await page.getByRole("heading").count()).toBe(0);
    });
  });

  it("fits a screen 320 pixels wide, without scrolling sideways or cutting a table off", async () => {
    const id = await create({ title: "A".repeat(200), content: "w".repeat(500), owner_id: "narrow" });
    await signIn(page, running.url, key);
    await page.setViewportSize({ width: 320, height: 640 });
    for (const address of [
      "/knowledge",
      await scopeOf("narrow"),
      "/add",
      `/documents/${id}`,
      "/search?q=w&owner=narrow",
      "/access",
      "/access?tab=usage",
    ]) {
      await open(address);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      await expect.poll(() => page.locator(".bones").count()).toBe(0);
      const over = await page.evaluate<number>(
        "Math.max(0, document.documentElement.scrollWidth - innerWidth)",
      );
      const cut = await page.evaluate<number>(
        "[...document.querySelectorAll('.card:has(> table)')].filter((card) => card.scrollWidth > card.clientWidth && getComputedStyle(card).overflowX !== 'auto').length",
      );
      // The menu scrolls, to the page that is shown.
      const current = await page.locator(".nav [aria-current]").boundingBox();
      const isSeen = current !== null && current.x >= 0 && current.x + current.width <= 320;
      expect({ address, over, cut, isSeen }).toEqual({ address, over: 0, cut: 0, isSeen: true });
    }
  });
});
