import { expect, it, vi } from "vitest";
import { WAIT } from "../../wait.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../src/wire/primitives.ts";
import { byWords, LATER, NOW, wordsOnly } from "./store-fixture.ts";

/** A database that a test can damage. */
export interface DamagedDatabase {
  open(): Promise<Store>;
  /** Runs a statement, and returns its rows. */
  run(statement: string): Promise<readonly unknown[]>;
}

/** Documents of three chunks: more chunks than one step of a rebuild moves. */
const DOCUMENTS = 300;
const idOf = (at: number): string => at.toString(16).padStart(24, "0");

/** Tests that a store rebuilds the parts of its index of words that a search finds damaged. Each statement damages some. */
export function testRebuilds(
  create: () => Promise<DamagedDatabase>,
  statements: readonly (readonly [name: string, statement: string])[],
): void {
  it.each(statements)(
    "searches find what they found before after %s was damaged",
    async (_name, statement) => {
      const database = await create();
      const store = await database.open();
      const { id: accountId } = await store.records.ensureAccount("local");
      const collections = await store.records.collections(accountId);
      const collectionId = collections.find(({ tier }) => tier === "fastest")?.id ?? "";
      const add = (at: number, ownerId: string, content: string) =>
        store.records.createResource(
          {
            accountId,
            id: idOf(at),
            tier: "fastest",
            ownerId,
            origin: "content",
            title: `Title ${at}`,
            description: "",
            url: null,
            content,
            settings: DEFAULT_SETTINGS,
            createdAt: NOW,
          },
          wordsOnly(content),
        );
      await add(1000, "bob", "quay");
      for (let at = 0; at < DOCUMENTS; at++)
        await add(at, "ann", `tide ${at}\n\nmoon and sea ${at}\n\n${"wave ".repeat(at % 9)}ebb`);
      await vi.waitFor(
        async () => expect(await database.run("SELECT 1 FROM word_run")).not.toHaveLength(0),
        WAIT,
      );
      for (let at = 0; at < 5; at++)
        await store.records.deleteResource({ accountId, id: idOf(at), nowIso: LATER });
      await add(2000, "ann", "the last tide");

      const search = async (within: Store, query: string, ownerId = "ann"): Promise<number[]> => {
        const scope = { accountId, collectionId, ownerId };
        const { hits } = await byWords(within, { scope, query, limit: 1000 });
        return hits.map(({ bm25 }) => bm25);
      };
      const all = async (within: Store) => [
        await search(within, "tide 150"),
        await search(within, "moon wave"),
        await search(within, "last"),
      ];
      const before = await all(store);
      await store.close();
      await database.run(statement);
      const damaged = await database.open();
      await expect(search(damaged, "moon")).rejects.toMatchObject({ code: "index_damaged", retryable: true });
      expect(await search(damaged, "quay", "bob")).toHaveLength(1);
      await vi.waitFor(async () => expect(await all(damaged)).toEqual(before), WAIT);
      // Merges and removals go on as before.
      await damaged.records.deleteResource({ accountId, id: idOf(5), nowIso: LATER });
      await damaged.scrub(accountId);
      expect(await search(damaged, "tide")).toHaveLength(DOCUMENTS - 5);
      await damaged.close();
    },
  );
}
