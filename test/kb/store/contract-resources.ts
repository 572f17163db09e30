import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Span } from "../../../src/kb/ingest/chunk/span.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import type { Chunk } from "../../../src/kb/store/chunks.ts";
import type { ResourceChange } from "../../../src/kb/store/resources.ts";
import { ingestLine } from "../../../src/kb/queue/queue.ts";
import { DEFAULT_SETTINGS, Tier } from "../../../src/wire/primitives.ts";
import { LATER, NOW, wordsOnly, type StoreFixture } from "./store-fixture.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Accounts, resources, files and notes of requests. */
export function resourceContract(fixture: StoreFixture): void {
  const { newId, resource, create, collection, scope, find, texts, alone } = fixture;

  describe("accounts, keys and collections", () => {
    it("returns the same account for the same name", async () => {
      expect(await fixture.store.records.ensureAccount(fixture.account.name)).toEqual(fixture.account);
      expect((await fixture.store.records.ensureAccount("somebody")).id).not.toBe(fixture.account.id);
      expect(fixture.account.id).toMatch(/^[0-9a-f]{24}$/);
    });

    it("a new account has three collections with stable ids", async () => {
      const before = await fixture.store.records.collections(fixture.account.id);
      expect(before.map(({ tier }) => tier)).toEqual(Tier.options);
      expect(new Set(before.map(({ id }) => id)).size).toBe(3);
      await create("some text");
      const after = await fixture.store.records.collections(fixture.account.id);
      expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    });

    it("counts live resources and chunks", async () => {
      const one = await create("one two\n\nthree four");
      await create("five");
      expect(await collection()).toMatchObject({ resources: 2, chunks: 3 });
      await fixture.store.records.deleteResource({
        accountId: fixture.account.id,
        id: one.id,
        nowIso: LATER,
      });
      expect(await collection()).toMatchObject({ resources: 1, chunks: 1 });
    });

    it("lists the owners with live resources in pages, for the account alone", async () => {
      const { store, account } = fixture;
      const one = await create("some text", { ownerId: "bob" });
      await create("one\n\ntwo", { ownerId: "ann", tier: "moderate" });
      await create("other text", { ownerId: "ann" });
      await create("more text", { ownerId: "ann" });
      const stranger = await store.records.ensureAccount(`stranger to ${account.name}`);
      await store.records.createResource(
        { ...resource("hidden"), accountId: stranger.id },
        wordsOnly("hidden"),
      );

      const all = await store.records.owners({ accountId: account.id, after: undefined, limit: 10 });
      const shown = all.map(({ ownerId, tier, resources, chunks }) => [ownerId, tier, resources, chunks]);
      expect(shown.toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
        ["ann", "fastest", 2, 2],
        ["ann", "moderate", 1, 2],
        ["bob", "fastest", 1, 1],
      ]);
      const paged = [];
      for (let after = undefined as (typeof all)[number] | undefined; ; after = paged.at(-1)) {
        const page = await store.records.owners({ accountId: account.id, after, limit: 1 });
        if (page.length === 0) break;
        paged.push(...page);
      }
      expect(paged).toEqual(all);

      await store.records.deleteResource({ accountId: account.id, id: one.id, nowIso: LATER });
      const left = await store.records.owners({ accountId: account.id, after: undefined, limit: 10 });
      expect(left.map(({ ownerId }) => ownerId)).toEqual(["ann", "ann"]);
    });

    it("finds a key by its hash, and replaces a key with the same hash", async () => {
      const key = {
        sha256: "a".repeat(64),
        id: "0".repeat(24),
        hint: "kb_abcde",
        accountId: fixture.account.id,
        name: "first",
        scopes: ["read", "write"],
        createdAt: NOW,
        expiresAt: null,
        revokedAt: null,
      } as const;
      await fixture.store.records.putKey(key);
      expect(await fixture.store.records.keyByHash(key.sha256)).toEqual(key);
      const again = { ...key, name: "second", scopes: ["read"], expiresAt: LATER } as const;
      await fixture.store.records.putKey(again);
      expect(await fixture.store.records.keyByHash(key.sha256)).toEqual(again);
      expect(await fixture.store.records.keyByHash("b".repeat(64))).toBeUndefined();
    });
  });

  describe("resources", () => {
    it("changes a resource only in the expected state", async () => {
      const { id, revision } = await create("Alpha.");
      const at = { accountId: fixture.account.id, id, nowIso: LATER };
      const job = {
        body: "{}",
        nowMs: 0,
        jobsMax: 9,
      };
      const changed = await fixture.store.records.updateResource(
        { ...at, title: "B", expectedRevision: revision },
        undefined,
      );
      expect(changed?.title).toBe("B");
      const stale = { ...at, expectedRevision: revision };
      const refused = { code: "precondition_failed" };
      await expect(
        fixture.store.records.updateResource({ ...stale, title: "C" }, undefined),
      ).rejects.toMatchObject(refused);
      await expect(fixture.store.records.enqueueUpdate(stale, job)).rejects.toMatchObject(refused);
      await expect(fixture.store.records.deleteResource(stale)).rejects.toMatchObject(refused);
      expect(await fixture.store.records.resource(at)).toEqual(changed);
      await expect(
        fixture.store.records.deleteResource({ ...at, expectedRevision: revision + 1 }),
      ).resolves.toMatchObject({ isDeleted: true });
    });

    it("starts a newer change of a queued resource without what the older one needed first", async () => {
      const { queue, records } = fixture.store;
      const { id, accountId, ownerId } = await create("Alpha.");
      const put = (content: string) => {
        const body = JSON.stringify({ update: { content } });
        const job = { body, fileToken: null, nowMs: 0, jobsMax: 9 };
        return records.enqueueUpdate({ accountId, id, nowIso: LATER }, job);
      };
      const change = () => queue.change({ accountId, id, nowMs: 0 });
      await put("Beta.");
      const found = await change();
      const job = await queue.lease({ number: found?.number ?? 0, worker: "one", nowMs: 0 });
      const needing = ingestLine(accountId, ownerId, "text+slot");
      await queue.postpone(job ?? { number: 0, token: 0 }, {
        dueMs: 0,
        nowMs: 0,
        counts: false,
        line: needing,
      });
      expect(await change()).toMatchObject({ line: needing });
      await put("Gamma.");
      expect(await change()).toMatchObject({ line: ingestLine(accountId, ownerId) });
    });

    it("returns a resource as it was created", async () => {
      const wanted = resource("Alpha beta.\n\nGamma delta.", {
        title: "Greek",
        description: "letters",
        url: "u",
      });
      const created = await fixture.store.records.createResource(wanted, wordsOnly(wanted.content));
      expect(created).toEqual({
        ...wanted,
        collectionId: (await collection()).id,
        version: 1,
        chunkCount: 2,
        refreshedAt: null,
        updatedAt: NOW,
        isDeleted: false,
        metadata: {},
        revision: 1,
        status: "chunked",
        statusMessage: null,
        statusError: null,
        strategyUsed: "recursive",
        warning: null,
      });
      expect(await fixture.store.records.resource({ accountId: fixture.account.id, id: created.id })).toEqual(
        created,
      );
    });

    it("refuses a taken resource id and leaves the first resource as it is", async () => {
      const first = await create("first text");
      await expect(create("second text", { id: first.id })).rejects.toMatchObject({ code: "conflict" });
      expect(await texts("first second")).toEqual(["first text"]);
    });

    it("refuses a resource of an unknown account", async () => {
      await expect(create("text", { accountId: "f".repeat(24) })).rejects.toMatchObject({
        code: "no_account",
      });
    });

    it("returns content and chunks of any text with any spans", async () => {
      await fc.assert(
        fc.asyncProperty(textWithSpans(), async ({ text, spans }) => {
          const { id } = await create(text, {}, { spans });
          const at = { accountId: fixture.account.id, id };
          expect((await fixture.store.records.resource(at))?.content).toBe(text);
          const chunks = await fixture.chunks(at);
          expect(chunks.map(({ start, end, headings }) => ({ start, end, headings }))).toEqual(spans);
          expect(chunks.map((chunk) => chunk.text)).toEqual(
            spans.map((span) => text.slice(span.start, span.end)),
          );
          const refs = chunks.map(({ ref }) => ref);
          expect(refs).toEqual([...new Set(refs)].toSorted((a, b) => a - b));
          expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(chunks.length);
          for (const chunk of chunks)
            expect(chunk.id).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        }),
        { numRuns: 40 },
      );
    });

    it("stores a text without chunks", async () => {
      const { id, chunkCount } = await create(" \n ");
      expect(chunkCount).toBe(0);
      expect((await fixture.store.records.resource({ accountId: fixture.account.id, id }))?.content).toBe(
        " \n ",
      );
    });

    it("changes fields of a resource without chunking again", async () => {
      const { id } = await create("The body stays.", { title: "Old", description: "was" });
      const at = { accountId: fixture.account.id, id };
      const before = await fixture.chunks(at);
      const updated = await fixture.store.records.updateResource(
        { ...at, title: "Fresh", nowIso: LATER },
        undefined,
      );
      expect(updated).toMatchObject({
        title: "Fresh",
        description: "was",
        content: "The body stays.",
        version: 1,
        refreshedAt: LATER,
        updatedAt: LATER,
        createdAt: NOW,
      });
      expect(await fixture.store.records.resource(at)).toEqual(updated);
      // The chunks keep their ids, but may have other refs: a search finds them by other words.
      const withoutRef = (chunk: Chunk): Omit<Chunk, "ref"> => {
        const { ref: _, ...others } = chunk;
        return others;
      };
      expect((await fixture.chunks(at)).map(withoutRef)).toEqual(before.map(withoutRef));
    });

    it("a change of a description, with a marker or not, writes nothing but the record", async () => {
      const description = "Tides [kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]";
      const { id } = await create("The body stays.", { description, metadata: { path: "a.md" } });
      const at = { accountId: fixture.account.id, id };
      const before = await fixture.chunks(at);
      for (const change of [description.replace("x7f2k5wd", "aaaaaaaa"), "Tides"]) {
        const updated = await fixture.store.records.updateResource(
          { ...at, description: change, nowIso: LATER },
          undefined,
        );
        expect(updated).toMatchObject({ description: change, version: 1, updatedAt: LATER });
        expect(await fixture.store.records.resource(at)).toEqual(updated);
        // With the refs: the words of new ones would have been indexed again.
        expect(await fixture.chunks(at)).toEqual(before);
      }
    });

    it("changes each field alone, and leaves all others as they are", async () => {
      const start = {
        title: "Old",
        description: "was",
        url: "https://a.example/",
        origin: "link",
        metadata: { kind: "note" },
        fileMetadata: { pages: 3 },
      } as const;
      const warning = "Page 2 was not read.";
      const made = await create("The body stays.", start, { ...wordsOnly("The body stays."), warning });
      const at = { accountId: fixture.account.id, id: made.id };
      expect(made).toMatchObject({ metadata: { kind: "note", pages: 3 }, warning });
      const settings = { ...DEFAULT_SETTINGS, chunkSize: 77 };
      const changes: readonly (readonly [ResourceChange | object, object])[] = [
        [{}, {}],
        [{ title: "New" }, { title: "New" }],
        [{ description: "" }, { description: "" }],
        [{ url: "https://b.example/" }, { url: "https://b.example/" }],
        [{ settings }, { settings }],
        [{ metadata: { kind: "memo" } }, { metadata: { kind: "memo", pages: 3 } }],
        [{ fileToken: null }, {}],
      ];
      const expected = { ...made };
      for (const [change, changed] of changes) {
        await fixture.store.records.updateResource({ ...at, ...change, nowIso: LATER }, undefined);
        const always = { refreshedAt: LATER, updatedAt: LATER, revision: expected.revision + 1 };
        Object.assign(expected, changed, always);
        expect(await fixture.store.records.resource(at)).toEqual(expected);
      }
    });

    it("replaces the facts of a file, the warning and the strategy with the content", async () => {
      const { id } = await create("one", { metadata: { a: 1 }, fileMetadata: { pages: 3 } });
      const at = { accountId: fixture.account.id, id };
      const update = (content: string, fileMetadata: ResourceChange["fileMetadata"], facts: object) =>
        fixture.store.records.updateResource(
          { ...at, content, ...(fileMetadata && { fileMetadata }), nowIso: LATER, completesCreate: true },
          { ...wordsOnly(content), ...facts },
        );
      const second = await update("two", { pages: 4 }, { warning: "partly", strategyUsed: "semantic" });
      expect(second).toMatchObject({
        metadata: { a: 1, pages: 4 },
        warning: "partly",
        strategyUsed: "semantic",
        refreshedAt: null,
        updatedAt: LATER,
      });
      expect(await update("three", undefined, {})).toMatchObject({
        metadata: { a: 1 },
        warning: null,
        strategyUsed: "recursive",
      });
    });

    it("finds chunks by the new title and not by the old one", async () => {
      const { id } = await create("The body stays.", { title: "Zebra" });
      expect(await texts("zebra")).toEqual(["The body stays."]);
      await fixture.store.records.updateResource(
        { accountId: fixture.account.id, id, title: "Giraffe", nowIso: LATER },
        undefined,
      );
      expect(await texts("zebra")).toEqual([]);
      expect(await texts("giraffe")).toEqual(["The body stays."]);
    });

    it("replaces the text and its chunks as a whole", async () => {
      const { id } = await create("apple\n\nbanana");
      const at = { accountId: fixture.account.id, id };
      const before = await fixture.chunks(at);
      const content = "cherry\n\ndate\n\nelder";
      const updated = await fixture.store.records.updateResource(
        { ...at, content, nowIso: LATER },
        wordsOnly(content),
      );
      expect(updated).toMatchObject({ content, version: 2, chunkCount: 3, refreshedAt: LATER });
      expect(await texts("apple banana")).toEqual([]);
      const found = await find("cherry");
      expect(found).toMatchObject([{ text: "cherry", version: 2, resourceId: id }]);
      const ids = new Set(before.map((chunk) => chunk.id));
      expect((await fixture.chunks(at)).some((chunk) => ids.has(chunk.id))).toBe(false);
      expect(
        await fixture.store.index.foundChunks(
          await scope(),
          before.map(({ ref }) => ref),
        ),
      ).toEqual([]);
    });

    it("applies the last of several concurrent updates", async () => {
      const { id } = await create("start");
      const sent = Array.from({ length: 20 }, (_, index) => `word${index}`);
      const answers = await Promise.all(
        sent.map((content) =>
          fixture.store.records.updateResource(
            { accountId: fixture.account.id, id, content, nowIso: LATER },
            wordsOnly(content),
          ),
        ),
      );
      expect(answers.map((answer) => answer?.version)).toEqual(sent.map((_, index) => index + 2));
      expect(await texts(sent.join(" "))).toEqual(["word19"]);
      expect(await collection()).toMatchObject({ resources: 1, chunks: 1 });
    });

    it("reads chunks within a scope alone", async () => {
      const refsOf = async (id: string) =>
        (await fixture.chunks({ accountId: fixture.account.id, id })).map(({ ref }) => ref);
      const textsIn = async (within: Scope) => {
        const chunks = await fixture.store.index.foundChunks(within, refs);
        return chunks.map(({ text }) => text).toSorted();
      };
      const made = [
        await create("one", { ownerId: "bob" }),
        await create("two"),
        await create("three"),
        await create("four", { ownerId: "carl" }),
      ];
      const refs = (await Promise.all(made.map(({ id }) => refsOf(id)))).flat();
      expect(await textsIn(await scope("bob"))).toEqual(["one"]);
      expect(await textsIn(await scope())).toEqual(["three", "two"]);
      expect(await textsIn(await scope("carl"))).toEqual(["four"]);
      for (const [at, text] of ["one", "two", "three", "four"].entries())
        expect(await textsIn({ accountId: fixture.account.id, resourceId: made[at]?.id ?? "" })).toEqual([
          text,
        ]);
    });

    it("removes a deleted resource from every read at once, and returns it once", async () => {
      const { id } = await create("kiwi\n\nlemon");
      const at = { accountId: fixture.account.id, id };
      const refs = (await fixture.chunks(at)).map(({ ref }) => ref);
      expect(await fixture.store.records.tierOf(at)).toBe("fastest");
      const deleted = await fixture.store.records.deleteResource({ ...at, nowIso: LATER });
      expect(await fixture.store.records.tierOf(at)).toBeUndefined();
      expect(deleted).toMatchObject({ id, isDeleted: true, updatedAt: LATER, content: "kiwi\n\nlemon" });
      expect(await fixture.store.records.resource(at)).toBeUndefined();
      expect(await fixture.chunks(at)).toEqual([]);
      expect(await fixture.store.index.foundChunks(await scope(), refs)).toEqual([]);
      expect(await texts("kiwi lemon")).toEqual([]);
      expect(await fixture.store.records.deleteResource({ ...at, nowIso: LATER })).toBeUndefined();
      expect(
        await fixture.store.records.updateResource({ ...at, title: "x", nowIso: LATER }, undefined),
      ).toBeUndefined();
    });

    it("stores two chunks of equal text as two", async () => {
      const one = await create("the same words");
      const two = await create("the same words");
      expect((await find("same words")).map(({ resourceId }) => resourceId)).toEqual([one.id, two.id]);
      await fixture.store.records.deleteResource({
        accountId: fixture.account.id,
        id: one.id,
        nowIso: LATER,
      });
      expect((await find("same words")).map(({ resourceId }) => resourceId)).toEqual([two.id]);
    });

    it("lists the live resources of one owner of a collection by id, in pages", async () => {
      const listed = [];
      for (let at = 0; at < 5; at++) listed.push(await create(`text ${at}`));
      await create("foreign", { ownerId: "bob" });
      await create("elsewhere", { tier: "moderate" });
      const gone = listed[1];
      if (gone !== undefined)
        await fixture.store.records.deleteResource({
          accountId: fixture.account.id,
          id: gone.id,
          nowIso: LATER,
        });
      const query = {
        accountId: fixture.account.id,
        collectionId: (await collection()).id,
        ownerId: "ann",
        limit: 2,
        charsMax: 1_000_000,
      };
      const pages: string[][] = [];
      let afterId: string | undefined;
      do {
        const page = await fixture.store.records.listResources({ ...query, afterId });
        pages.push(page.resources.map(({ content }) => content));
        afterId = page.more ? page.resources.at(-1)?.id : undefined;
      } while (afterId !== undefined);
      expect(pages).toEqual([
        ["text 0", "text 2"],
        ["text 3", "text 4"],
      ]);
    });

    it("ends a page at its bound of characters, with at least one resource", async () => {
      for (const length of [10, 10, 100, 1]) await create("x".repeat(length), { title: "" });
      const query = { accountId: fixture.account.id, collectionId: (await collection()).id, ownerId: "ann" };
      const lengths = async (charsMax: number, limit: number) => {
        const page = await fixture.store.records.listResources({
          ...query,
          afterId: undefined,
          limit,
          charsMax,
        });
        return [page.resources.map(({ content }) => content.length), page.more];
      };
      expect(await lengths(1, 10)).toEqual([[10], true]);
      expect(await lengths(15, 10)).toEqual([[10, 10], true]);
      expect(await lengths(21, 10)).toEqual([[10, 10, 100], true]);
      expect(await lengths(1000, 3)).toEqual([[10, 10, 100], true]);
      expect(await lengths(1000, 4)).toEqual([[10, 10, 100, 1], false]);
      expect(await lengths(21, 1)).toEqual([[10], true]);
    });

    it("returns chunks with their version", async () => {
      const { id } = await create("one\n\ntwo");
      const at = { accountId: fixture.account.id, id };
      expect((await fixture.store.records.chunks(at))?.version).toBe(1);
      await fixture.store.records.updateResource(
        { ...at, content: "three", nowIso: LATER },
        wordsOnly("three"),
      );
      expect(await fixture.store.records.chunks(at)).toMatchObject({
        version: 2,
        chunks: [{ text: "three" }],
      });
      await fixture.store.records.deleteResource({ ...at, nowIso: LATER });
      expect(await fixture.store.records.chunks(at)).toBeUndefined();
    });
  });

  describe("positions in the text", () => {
    const CONTENT = "\none\n\ntwo\nand more\n\nthree";
    const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

    it("returns line, locations and digest with each chunk, also when it is found", async () => {
      const { id } = await create(CONTENT, {
        locations: [
          { start: 0, page: 1 },
          { start: 10, sheet: "Q1", rows: { first: 3, last: 9 } },
        ],
        origin: "link",
        url: "https://a.example/",
      });
      const version = { version: 1, sha256: digest(CONTENT), url: "https://a.example/" };
      const first = { start: 0, page: 1 };
      const third = { start: 10, sheet: "Q1", rows: { first: 3, last: 9 }, line: 5 };
      const chunks = [
        { text: "one", line: 2, locations: [first] },
        { text: "two\nand more", line: 4, locations: [first, third] },
        { text: "three", line: 7, locations: [third] },
      ];
      const at = { accountId: fixture.account.id, id };
      expect(await fixture.store.records.chunks(at)).toMatchObject({ ...version, chunks });
      expect(await fixture.store.records.chunks({ ...at, offset: 1, limit: 1 })).toMatchObject({
        chunks: [chunks[1]],
      });
      expect(await find("more")).toMatchObject([{ ...version, ...chunks[1] }]);
    });

    it("keeps locations while the content stays, and replaces them with it", async () => {
      const { id } = await create(CONTENT, {
        locations: [
          { start: 0, page: 1 },
          { start: 10, page: 2 },
        ],
      });
      const at = { accountId: fixture.account.id, id };
      const update = (change: Partial<ResourceChange>, text?: string): Promise<unknown> =>
        fixture.store.records.updateResource(
          { ...at, nowIso: LATER, ...change },
          text === undefined ? undefined : wordsOnly(text),
        );
      const pagesOfChunks = async (): Promise<(number | undefined)[][]> =>
        (await fixture.chunks(at)).map(({ locations }) => locations.map(({ page }) => page));
      await update({ title: "Renamed" });
      expect(await pagesOfChunks()).toEqual([[1], [1, 2], [2]]);
      await update({ settings: DEFAULT_SETTINGS }, CONTENT);
      expect(await pagesOfChunks()).toEqual([[1], [1, 2], [2]]);
      await update({ content: "four", locations: [{ start: 0, page: 2 }] }, "four");
      expect(await pagesOfChunks()).toEqual([[2]]);
      expect(await find("four")).toMatchObject([{ version: 3, sha256: digest("four"), url: null }]);
      await update({ content: "five" }, "five");
      expect(await pagesOfChunks()).toEqual([[]]);
    });
  });

  describe("isolation of accounts", () => {
    it("reads, writes and finds nothing of another account", async () => {
      const mine = await create("secret words");
      const other = await fixture.store.records.ensureAccount("other");
      const at = { accountId: other.id, id: mine.id };
      expect(await fixture.store.records.resource(at)).toBeUndefined();
      expect(await fixture.store.records.tierOf(at)).toBeUndefined();
      expect(await fixture.chunks(at)).toEqual([]);
      expect(
        await fixture.store.records.updateResource({ ...at, title: "stolen", nowIso: LATER }, undefined),
      ).toBeUndefined();
      expect(await fixture.store.records.deleteResource({ ...at, nowIso: LATER })).toBeUndefined();
      const { id: collectionId } = await collection();
      const foreign: Scope = { accountId: other.id, collectionId, ownerId: "ann" };
      expect(await texts("secret", foreign)).toEqual([]);
      expect(await texts("secret", { accountId: other.id, resourceId: mine.id })).toEqual([]);
      const refs = (await fixture.chunks({ accountId: fixture.account.id, id: mine.id })).map(
        ({ ref }) => ref,
      );
      expect(await fixture.store.index.foundChunks(foreign, refs)).toEqual([]);
      const page = {
        accountId: other.id,
        collectionId,
        ownerId: "ann",
        afterId: undefined,
        limit: 10,
        charsMax: 100,
      };
      expect(await fixture.store.records.listResources(page)).toEqual({ resources: [], more: false });
      expect(await texts("secret")).toEqual(["secret words"]);
    });
  });

  describe("files and notes of requests", () => {
    it("finds a file by its token", async () => {
      const file = {
        token: "t".repeat(43),
        accountId: fixture.account.id,
        name: "a.pdf",
        mediaType: "application/pdf",
        declaredType: "text/csv",
        sizeBytes: 3,
        sha256: "c".repeat(64),
        createdAt: NOW,
      };
      await fixture.store.records.addFile(file);
      expect(await fixture.store.records.file(file.token)).toEqual(file);
      expect(await fixture.store.records.file("unknown")).toBeUndefined();
    });

    it("notes a request with its write, and refuses another write under its key for a day, separately for each account", async () => {
      const nowMs = 1_800_000_000_000;
      const make = (status: number, atMs: number) => {
        const request = { key: "key", bodySha256: "d".repeat(64), status, nowMs: atMs };
        return fixture.store.records.createResource(resource("some words"), wordsOnly("some words"), {
          request,
        });
      };
      const recall = (atMs: number) => fixture.store.records.recall(fixture.account.id, "key", atMs);
      const { content: _, ...made } = await make(201, nowMs);
      await expect(make(500, nowMs + 1)).rejects.toMatchObject({ code: "request_noted" });
      const first = await recall(nowMs + 2);
      expect(first).toMatchObject({ bodySha256: "d".repeat(64), status: 201 });
      expect(JSON.parse(first?.body ?? "")).toEqual({ resource: made });
      expect(await recall(nowMs + DAY_MS - 1)).toEqual(first);
      expect(await recall(nowMs + DAY_MS)).toBeUndefined();
      const other = await fixture.store.records.ensureAccount("other");
      expect(await fixture.store.records.recall(other.id, "key", nowMs)).toBeUndefined();
      await make(200, nowMs + DAY_MS);
      expect(await recall(nowMs + DAY_MS + 1)).toMatchObject({ status: 200 });
      expect(await fixture.store.records.sweepAnswers(nowMs + 3 * DAY_MS, 10)).toBe(1);
      expect(await recall(nowMs + DAY_MS + 1)).toBeUndefined();
    });

    it("writes no note for a write that fails", async () => {
      const made = await create("some words");
      const request = { key: "failed", bodySha256: "d".repeat(64), status: 201, nowMs: 1 };
      const again = resource("some words", { id: made.id });
      await expect(
        fixture.store.records.createResource(again, wordsOnly("some words"), { request }),
      ).rejects.toThrow(/./);
      expect(await fixture.store.records.recall(fixture.account.id, "failed", 2)).toBeUndefined();
    });
  });

  it("commits the other writes of a batch if one fails", async () => {
    const id = newId();
    const sent = Array.from({ length: 30 }, (_, index) =>
      create(`batchmate${index}`, index === 7 || index === 19 ? { id } : {}).catch((error: unknown) => error),
    );
    const answers = await Promise.all(sent);
    expect(answers.filter((answer) => answer instanceof Error)).toHaveLength(1);
    expect(await collection()).toMatchObject({ resources: 29, chunks: 29 });
    expect(await texts("batchmate7 batchmate19")).toEqual(["batchmate7"]);
    expect(await texts("batchmate18")).toEqual(["batchmate18"]);
  });

  it("allows closing a store twice, and refuses calls afterwards", () =>
    alone(async (own) => {
      await create("last words");
      await own.close();
      await own.close();
      await expect(
        own.records.resource({ accountId: fixture.account.id, id: "0".repeat(24) }),
      ).rejects.toThrow(/./);
      await expect(own.records.ensureAccount("late")).rejects.toThrow(/./);
    }));
}

/** Any text with spans that ascend by start and end and may overlap or leave gaps, as chunkers return them. */
function textWithSpans(): fc.Arbitrary<{ text: string; spans: Span[] }> {
  const text = fc.array(fc.constantFrom("a", "bc ", "\n", "é", "知识", "🙂", "\u0000", "# x", "  "), {
    maxLength: 60,
  });
  const cuts = fc.array(fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 12 })), { maxLength: 8 });
  const headings = fc.array(fc.constantFrom("", "One", "Zwei Wörter", '"q"'), { maxLength: 3 });
  return fc.tuple(text, cuts, headings).map(([parts, steps, path]) => {
    // Never splits a surrogate pair; no chunker does.
    const bounds = [0];
    for (const part of parts) bounds.push((bounds.at(-1) ?? 0) + part.length);
    const last = bounds.length - 1;
    const spans: Span[] = [];
    let from = -1;
    let to = 0;
    for (const [step, size] of steps) {
      from = Math.min(last, from + 1 + step);
      to = Math.min(last, Math.max(to + 1, from + 1 + size));
      const span = { start: bounds[from] ?? 0, end: bounds[to] ?? 0, headings: path };
      if (from < to && span.end > (spans.at(-1)?.end ?? -1)) spans.push(span);
    }
    return { text: parts.join(""), spans };
  });
}
