import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  world.service.takesMetadata = true;
});
afterEach(async () => {
  await world.end();
});

/** The daemon asks again at each pass whether the service takes metadata. */
const timing = { metadataAgainMs: 0 };
type More = Parameters<World["sync"]>[0];

/** Runs one pass. Returns the fields of its creates and updates. */
const pass = async (more: More = {}): Promise<string[]> => {
  const before = world.service.requests.length;
  await world.sync({ timing, ...more });
  return world.service.requests
    .slice(before)
    .filter(({ operation }) => operation === "create" || operation === "update")
    .map(({ operation, body }) => `${operation}: ${Object.keys(body ?? {}).join(" ")}`);
};
const metadataOf = (title: string): Record<string, unknown> | undefined =>
  world.service.live().find((each) => each.title === title)?.metadata;
const withRules = (rules: unknown): More => ({ sources: [world.source({ rules })] });
const NEW = "create: title description settings collection_details owner_id metadata content";
const SMALL = "update: title description metadata";

describe("a service that takes metadata", () => {
  it("a service that takes metadata gets that of each file with the file, and nothing more in a second pass", async () => {
    world.write("work/a.md", "---\ntags: [one, two]\nrating: 3\nstatus: draft\n---\n# Alpha\n");
    world.write("p.pdf", "%PDF-1.4\n");
    expect((await pass()).toSorted()).toEqual([NEW, NEW.replace("content", "url")]);
    const sent = metadataOf("Alpha");
    expect(sent).toMatchObject({
      path: "work/a.md",
      folder: ["work"],
      name: "a.md",
      kind: "md",
      size: 57,
      tags: ["one", "two"],
      rating: 3,
      fm: { status: "draft" },
    });
    expect(Date.parse(String(sent?.["modified"]))).toBeGreaterThan(Date.now() - 60_000);
    expect(metadataOf("p.pdf")).toMatchObject({ path: "p.pdf", kind: "pdf" });
    expect(await pass()).toEqual([]);
  });

  it("a service that takes metadata gets the language of a text, unless the document or a rule names another", async () => {
    const german =
      "Der Hafenmeister läutet die Glocke zweimal, wenn der Nebel von Westen kommt, und die Fähre wartet. ";
    world.write("plain.md", `# Plain\n\n${german.repeat(4)}`);
    world.write("named.md", `---\ntitle: Named\nlang: de-AT\n---\n${german.repeat(4)}`);
    world.write("short.md", `# Short\n\n${german}`);
    await pass();
    expect(metadataOf("Plain")).toMatchObject({ language: "de" });
    expect(metadataOf("Named")).toMatchObject({ language: "de-AT" });
    expect(metadataOf("Short")).not.toHaveProperty("language");
    expect(await pass(withRules([{ match: "plain.md", metadata: { language: "bar" } }]))).toEqual([SMALL]);
    expect(metadataOf("Plain")).toMatchObject({ language: "bar" });
  });

  it("a service that takes metadata gets the sender and the date of a mail", async () => {
    const head = ["From: Ada <ada@example.org>", "Date: Tue, 02 Jan 2024 03:04:05 +0000", "Subject: Hello"];
    world.write("m.eml", [...head, "Content-Type: text/plain", "", "Text."].join("\r\n"));
    expect(await pass()).toEqual([NEW]);
    expect(metadataOf("Hello")).toMatchObject({
      from: "Ada <ada@example.org>",
      date: "2024-01-02T03:04:05.000Z",
      kind: "eml",
    });
  });

  it("a service that takes metadata gets it in a small update without the text when a folder is renamed", async () => {
    world.write("old/a.md", "# Alpha\n");
    world.write("old/b.md", "# Beta\n");
    await pass();
    renameSync(join(world.root, "old"), join(world.root, "new"));
    expect(await pass()).toEqual([SMALL, SMALL]);
    expect(metadataOf("Alpha")).toMatchObject({ path: "new/a.md", folder: ["new"] });
    expect(await pass()).toEqual([]);
  });

  it("a service that takes metadata gets a changed tag of front matter in one update", async () => {
    world.write("a.md", "---\ntags: [one]\n---\n# Alpha\n");
    await pass();
    world.write("a.md", "---\ntags: [one, two]\n---\n# Alpha\n");
    expect(await pass()).toEqual([`${SMALL} content`]);
    expect(metadataOf("Alpha")).toMatchObject({ tags: ["one", "two"] });
    expect(await pass()).toEqual([]);
  });

  it("a service that takes metadata gets it in a small update when a rule of the configuration changes", async () => {
    world.write("a.md", "# Alpha\n");
    world.write("b.txt", "b");
    await pass();
    const rule = [{ match: "*.md", metadata: { team: "Blue", tags: ["new"] } }];
    expect(await pass(withRules(rule))).toEqual([SMALL]);
    expect(metadataOf("Alpha")).toMatchObject({ team: "Blue", tags: ["new"] });
    expect(await pass(withRules(rule))).toEqual([]);
    expect(await pass()).toEqual([SMALL]);
    expect(metadataOf("Alpha")).not.toHaveProperty("team");
  });

  it("a service that takes metadata gets the descriptions of a file's folders, and a small update when one changes", async () => {
    world.write(".kbsync.md", "All of it.\n");
    world.write("work/.kbsync.md", "Work.");
    world.write("work/deep/a.md", "# Alpha\n");
    world.write("b.md", "# Beta\n");
    await pass();
    expect(metadataOf("Alpha")?.["folderDescription"]).toBe("All of it.\n\nWork.");
    expect(metadataOf("Beta")?.["folderDescription"]).toBe("All of it.");
    world.write("work/.kbsync.md", "Other work.");
    expect(await pass()).toEqual([SMALL]);
    expect(metadataOf("Alpha")?.["folderDescription"]).toBe("All of it.\n\nOther work.");
    rmSync(join(world.root, "work/.kbsync.md"));
    expect(await pass()).toEqual([SMALL]);
    expect(metadataOf("Alpha")?.["folderDescription"]).toBe("All of it.");
  });

  it("a service that takes metadata gets the new description while the daemon runs", async () => {
    world.write("work/a.md", "# Alpha\n");
    mkdirSync(join(world.root, "other"));
    const daemon = world.daemon({ timing });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await daemon.whenIdle();
    world.write("work/.kbsync.md", "Work.");
    await until(() => metadataOf("Alpha")?.["folderDescription"] === "Work.");
    stopping.abort();
    await running;
  });

  it("a service that takes metadata gets nothing for a touch", async () => {
    world.write("a.md", "# Alpha\n");
    await pass();
    world.write("a.md", "# Alpha\n");
    expect(await pass()).toEqual([]);
  });

  it("keeps what it has after the ledger is lost, and gets what it lacks", async () => {
    world.write("a.md", "# Alpha\n");
    world.write("b.md", "# Beta\n");
    await pass();
    const beta = world.service.live().find(({ title }) => title === "Beta");
    delete beta?.metadata;
    rmSync(ledgerFile(world.stateDir));
    expect(await pass()).toEqual([SMALL]);
    expect(metadataOf("Beta")).toMatchObject({ path: "b.md" });
    expect(await pass()).toEqual([]);
  });

  it("a file whose metadata the service refuses fails with the service's words", async () => {
    world.service.fault = ({ body }) =>
      body?.["metadata"] === undefined
        ? undefined
        : { kind: "answer", status: 400, body: '{"success":false,"message":"metadata.path: too odd"}' };
    world.write("a.md", "# Alpha\n");
    await pass();
    expect(world.service.live()).toEqual([]);
    expect(await world.explain("a.md")).toMatchObject({
      version: { state: "failed", reason: "metadata.path: too odd" },
    });
  });

  it("shows in a preview and in an explanation that metadata will be sent", async () => {
    world.write("a.md", "# Alpha\n");
    await pass();
    world.write(".kbsync.md", "All of it.");
    const { planned } = await world.daemon().syncOnce({ dryRun: true });
    expect(planned).toMatchObject([{ path: "a.md", action: "retitle" }]);
    expect((await world.explain("a.md")).next).toEqual({
      action: "retitle",
      why: "its title, description or metadata changed, its content did not",
    });
  });
});

describe("a service that does not say that it takes metadata", () => {
  beforeEach(() => {
    world.service.takesMetadata = false;
  });

  it("a service that does not say that it takes metadata gets the requests of the specification and nothing else", async () => {
    world.write("a.md", "---\ntags: one\n---\n# Alpha\n");
    world.write(".kbsync.md", "All of it.");
    expect(await pass(withRules([{ match: "**", metadata: { team: "Blue" } }]))).toEqual([
      "create: title description settings collection_details owner_id content",
    ]);
    renameSync(join(world.root, "a.md"), join(world.root, "b.md"));
    expect(await pass()).toEqual(["update: title description"]);
    world.write(".kbsync.md", "Something else.");
    expect(await pass(withRules([]))).toEqual([]);
  });

  it("a service that does not say that it takes metadata gets a small update of every file once it begins to", async () => {
    world.write("a.md", "# Alpha\n");
    world.write("b.txt", "b");
    await pass();
    world.service.takesMetadata = true;
    expect(await pass()).toEqual([SMALL, SMALL]);
    expect(metadataOf("b.txt")).toMatchObject({ path: "b.txt", kind: "txt" });
    expect(await pass()).toEqual([]);
  });

  it("a service that does not say that it takes metadata is asked once a day at most", async () => {
    world.write("a.md", "# Alpha\n");
    await pass();
    const asked = world.service.count("collections");
    for (let times = 0; times < 3; times += 1) await world.sync();
    expect(world.service.count("collections")).toBe(asked);
  });
});
