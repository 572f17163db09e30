import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { LOCAL_ACCOUNT } from "../../../../src/kb/keys/keys.ts";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import type { ResourceJob } from "../../../../src/kb/store/resources.ts";
import { ROUTES } from "../../../../src/wire/routes.ts";
import { SearchAnswer } from "../../../../src/wire/search.ts";
import { isSkipped, newDatabase } from "./databases.ts";
import { newSite, WAIT_MS, type RunningService, type Site } from "./program.ts";

const Collections = z.object({
  data: z.object({ collections: z.array(z.object({ _id: z.string(), details: z.string() })) }),
});

const Resource = z.object({ data: z.object({ _id: z.string() }) });
const NOTE = { title: "note", description: "", content: "text", collection_details: "fastest" };
/** Less than the pause between looks for what was not announced, also on a busy machine. */
const SOON_MS = 5000;

function updateTo(content: string): ResourceJob {
  return { body: JSON.stringify({ update: { content } }), fileToken: null, nowMs: Date.now(), jobsMax: 100 };
}

describe.skipIf(isSkipped())("the program on PostgreSQL", () => {
  let database: string;
  let sites: Site[];
  let services: RunningService[];
  beforeEach(async () => {
    database = await newDatabase("template0");
    sites = [newSite(database), newSite(database)];
    services = [];
  });
  afterEach(async () => {
    await Promise.all(services.map((service) => service.stop()));
    for (const site of sites) site.remove();
  });

  const site = (at: number): Site => sites[at] ?? expect.unreachable();
  const start = async (at: number): Promise<RunningService> => {
    const service = await site(at).start("serve");
    services.push(service);
    return service;
  };
  /** The texts that a search for words finds in the folder's documents. */
  const search = async (service: RunningService, query: string): Promise<string[]> => {
    const { body: known } = await service.ask("GET", ROUTES.collections);
    const { collections } = Collections.parse(known).data;
    const collection = collections.find(({ details }) => details === "fastest")?._id;
    const { body } = await service.ask("POST", ROUTES.query, {
      query,
      collection_id: collection,
      owner_id: "tests",
      top_k: 5,
    });
    return SearchAnswer.parse(body).results.map(({ payload }) => payload.content);
  };

  it("commands of two processes on a new database create its tables once", async () => {
    const made = await Promise.all(sites.map((one, at) => one.run("key", "create", `reader-${at}`)));
    for (const each of made)
      expect(each).toMatchObject({ code: 0, stdout: expect.stringMatching(/^kb_/) as string });
    expect((await site(1).run("key", "list")).stdout).toContain("reader-0");
  });

  it("a process on PostgreSQL works on the jobs of another one as soon as it announces them", async () => {
    const service = await start(0);
    const store = await openPostgresStore(database);
    try {
      const { id: accountId } = await store.records.ensureAccount(LOCAL_ACCOUNT);
      const created = await service.ask("POST", ROUTES.resource, NOTE);
      const at = { accountId, id: Resource.parse(created.body).data._id };
      // After the checks of everything at a start.
      await sleep(3000);
      const startMs = performance.now();
      await store.records.enqueueUpdate({ ...at, nowIso: new Date().toISOString() }, updateTo("changed"));
      store.notices?.announce("ingest", accountId);
      await vi.waitFor(
        async () => expect((await store.records.resource(at))?.content).toBe("changed"),
        WAIT_MS,
      );
      expect(performance.now() - startMs).toBeLessThan(SOON_MS);
    } finally {
      await store.close();
    }
  });

  it("syncs a folder, and a second process finds its documents and accepts its keys", async () => {
    writeFileSync(join(site(0).docs, "dome.txt"), "The dome stays closed while it rains.");
    expect(await site(0).run("sync")).toMatchObject({ code: 0 });
    const [first, second] = await Promise.all([start(0), start(1)]);
    expect(await search(second, "dome rain")).toEqual(["The dome stays closed while it rains."]);
    expect(second.key).not.toBe(first.key);
    const made = await site(1).run("key", "create", "reader", "--scopes", "read");
    const pauthkey = made.stdout.trim();
    expect((await first.ask("GET", ROUTES.collections, undefined, { pauthkey })).status).toBe(200);
    writeFileSync(join(site(0).docs, "dome.txt"), "The dome opens at dusk.");
    expect(await site(0).run("sync")).toMatchObject({ code: 0 });
    expect(await search(second, "dome dusk rain")).toEqual(["The dome opens at dusk."]);
  });
});
