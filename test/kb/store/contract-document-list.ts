import { beforeEach, describe, expect, it } from "vitest";
import type { DocumentsQuery, ListPosition } from "../../../src/kb/store/search-index.ts";
import { LATER, type StoreFixture } from "./store-fixture.ts";

/** Lists of documents without their texts. */
export function documentListContract(fixture: StoreFixture): void {
  const { create, scope } = fixture;
  describe("a list of documents", () => {
    let whole: DocumentsQuery;
    const ask = async (change: Partial<DocumentsQuery> = {}) =>
      fixture.store.index.documents({ ...whole, ...change });
    const titles = async (change: Partial<DocumentsQuery> = {}): Promise<string[]> =>
      (await ask(change)).documents.map(({ title }) => title);

    beforeEach(async () => {
      const named = async (title: string, path: string) => create("moon", { title, metadata: { path } });
      await named("d", "docs-old/a.md");
      await named("c", "docs");
      await named("A über", "docs/deep/b.md");
      await named("b Über", "docs/a.md");
      await create("moon", { ownerId: "bob", title: "bob's" });
      whole = { scope: await scope(), after: undefined, limit: 10 };
    });

    it("a list of documents has what each document is but its text, and counts the statuses", async () => {
      const { documents, next, statuses } = await ask({ limit: 1 });
      expect(documents).toEqual([
        {
          _id: expect.any(String),
          title: "b Über",
          description: expect.any(String),
          url: null,
          path: "docs/a.md",
          status: "chunked",
          code: null,
          message: null,
          warning: null,
          createdAt: expect.any(String),
          updatedAt: expect.any(String),
          version: 1,
          chunks: 1,
        },
      ]);
      expect([next?.id, statuses]).toEqual([documents[0]?._id, { queued: 0, chunked: 4, error: 0 }]);
    });

    it.each([
      ["nothing", {}, ["b Über", "A über", "c", "d"]],
      ["a word of any case", { text: "ÜBER" }, ["b Über", "A über"]],
      ["characters of patterns", { text: "%" }, []],
      ["a folder", { text: "docs/" }, ["b Über", "A über"]],
      ["words of title and path", { text: "a.md ÜBER" }, ["b Über"]],
      ["a status", { status: "error" as const }, []],
      ["several of them", { text: "deep", status: "chunked" as const }, ["A über"]],
    ])("a list of documents is filtered by %s", async (_what, query, expected) => {
      expect(await titles(query)).toEqual(expected);
    });

    it("a list of documents neither shows nor matches the marker of a description", async () => {
      const marker = "[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]";
      const long = "ü𝒳".repeat(100);
      const texts = [`${long} tail ${marker}`, `A manual ${marker}`, marker, `Of ${marker} alone`];
      for (const description of texts) await create("moon", { ownerId: "dora", description });
      const shown = async (text?: string) =>
        (await ask({ scope: await scope("dora"), text })).documents.map(({ description }) => description);
      expect(await shown()).toEqual([texts[3], "", "A manual", long]);
      expect(await shown("manual")).toEqual(["A manual"]);
      expect(await shown("x7f2k5wd")).toEqual([texts[3]]);
      expect(await shown("tail")).toEqual([long]);
    });

    it("a list of documents has nothing of another owner", async () => {
      expect(await titles({ scope: await scope("bob") })).toEqual(["bob's"]);
      expect(await titles({ scope: await scope("nobody") })).toEqual([]);
    });

    it("a list of documents counts more documents with words than it reads in one step", async () => {
      const names = Array.from({ length: 501 }, (_, at) => `note ${String(at).padStart(3, "0")}`);
      await Promise.all(names.map((title) => create("moon", { title, ownerId: "carl" })));
      const { documents, statuses } = await ask({ scope: await scope("carl"), text: "note", limit: 2 });
      expect(documents).toHaveLength(2);
      expect(statuses?.chunked).toBe(501);
    });

    it("a list of documents is complete page by page, also when the last document of a page is deleted", async () => {
      const paged: string[] = [];
      let after: ListPosition | undefined;
      do {
        const { documents, next, statuses } = await ask({ after, limit: 1 });
        expect(statuses === undefined).toBe(after !== undefined);
        paged.push(...documents.map(({ title }) => title));
        after = next;
      } while (after !== undefined);
      expect(paged).toEqual(["b Über", "A über", "c", "d"]);
      const { next: last } = await ask({ limit: 1 });
      const at = { accountId: fixture.account.id, id: last?.id ?? "", nowIso: LATER };
      await fixture.store.records.deleteResource(at);
      expect(await titles({ after: last })).toEqual(["A über", "c", "d"]);
    });

    it("a list of documents goes on where it was when the last document of a page is changed meanwhile", async () => {
      const { next: after, documents } = await ask({ limit: 2 });
      const at = { accountId: fixture.account.id, id: after?.id ?? "", nowIso: LATER };
      await fixture.store.records.updateResource({ ...at, title: "z" }, undefined);
      const rest = await titles({ after });
      expect(rest).toHaveLength(2);
      expect(rest).not.toContain(documents[1]?.title);
      expect(await titles({ limit: 1 })).toEqual(["z"]);
    });

    it(
      "pages through few and many documents of a status alike",
      { timeout: 60_000 },
      // In a store of its own, whose queue it fills.
      () =>
        fixture.alone(async () => {
          const { account, store } = fixture;
          const fail = async (title: string): Promise<void> => {
            const { id } = await create("moon", {
              title,
              ownerId: "carol",
              metadata: { path: `in/${title}` },
            });
            const job = { body: '{"update":{}}', nowMs: 1000, jobsMax: 5000 };
            await store.records.enqueueUpdate({ accountId: account.id, id, nowIso: LATER }, job);
          };
          const names = Array.from({ length: 1102 }, (_, at) => String(at).padStart(4, "0"));
          await Promise.all(
            names.map((title) =>
              Number(title) < 1050 ? fail(title) : create("moon", { title, ownerId: "carol" }),
            ),
          );
          const part = { scope: await scope("carol"), limit: 300 };
          for (const [more, expected] of [
            [{ status: "queued" as const }, names.slice(0, 1050)],
            [{ status: "chunked" as const }, names.slice(1050)],
            [{ text: "IN/00 path" }, names.slice(0, 100)],
            [{ text: "in/", status: "queued" as const }, names.slice(0, 1050)],
          ] as const) {
            const { statuses } = await ask({ ...part, ...more });
            expect(statuses?.["status" in more ? more.status : "queued"]).toBe(expected.length);
            const found: string[] = [];
            let after: ListPosition | undefined;
            do {
              const page = await ask({ ...part, ...more, after });
              found.push(...page.documents.map(({ title }) => title));
              after = page.next;
            } while (after !== undefined);
            expect(found.toSorted()).toEqual(expected);
          }
        }),
    );
  });
}
