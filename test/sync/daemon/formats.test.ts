import { unlinkSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { docx, wordParagraph } from "../../formats/office-fixture.ts";
import { openWorld, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

const live = (): (readonly [string, string | undefined])[] =>
  world.service.live().map(({ title, content }) => [title, content] as const);
const operations = (from: number): string[] =>
  world.service.requests.slice(from).map(({ operation }) => operation);

it("sends a document as its text in one request, and only once", async () => {
  world.write("a.docx", docx(wordParagraph("Head", "heading1") + wordParagraph("Text.")));
  await world.sync();
  expect(live()).toEqual([["Head", "# Head\n\nText."]]);
  expect(operations(0).filter((operation) => operation === "upload")).toEqual([]);
  const before = world.service.requests.length;
  await world.sync();
  expect(operations(before)).toEqual([]);
});

it("keeps the resource of a document that becomes damaged, and reports it as failed with the reason", async () => {
  const good = docx(wordParagraph("Text."));
  world.write("a.docx", good);
  await world.sync();
  world.write("a.docx", good.subarray(0, good.length / 2));
  await world.sync();
  expect(live()).toEqual([["a.docx", "Text."]]);
  const troubled = readStatus(world.stateDir, 10)?.troubled;
  expect(troubled?.map(({ path }) => path)).toEqual(["a.docx"]);
  expect(JSON.stringify(troubled)).toContain("its text cannot be read: it is damaged");
  world.write("a.docx", docx(wordParagraph("Mended.")));
  await world.sync();
  expect(live()).toEqual([["a.docx", "Mended."]]);
});

it("updates a page once that was sent unconverted, and no other file", async () => {
  world.write("p.html", "<title>P</title><nav>Menu</nav><main><p>Text of the page.</p></main>");
  world.write("a.md", "# A\n");
  await world.sync();
  // As the ledger was before pages were converted.
  const db = new Database(ledgerFile(world.stateDir));
  db.exec("UPDATE files SET extractor_version = 1, rules_key = 1, digest = 'x' WHERE path = 'p.html'");
  db.exec("UPDATE files SET rules_key = 1");
  db.close();
  const before = world.service.requests.length;
  await world.sync();
  expect(operations(before)).toEqual(["update"]);
  await world.sync();
  expect(operations(before)).toEqual(["update"]);
  expect(live()).toContainEqual(["P", "Text of the page."]);
});

it("keeps the resource of a renamed document", async () => {
  const bytes = docx(wordParagraph("Text."));
  world.write("a.docx", bytes);
  world.write("b.txt", "b");
  await world.sync();
  const ids = world.service
    .live()
    .map(({ _id }) => _id)
    .toSorted();
  unlinkSync(join(world.root, "a.docx"));
  world.write("c.docx", bytes);
  await world.sync();
  expect(
    world.service
      .live()
      .map(({ _id }) => _id)
      .toSorted(),
  ).toEqual(ids);
});
