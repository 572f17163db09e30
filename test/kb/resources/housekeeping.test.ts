import { existsSync } from "node:fs";
import { readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openSharedTurns } from "../../../src/kb/queue/shared-turns.ts";
import { openFolder } from "../../../src/kb/uploads/folder.ts";
import { DEFAULT_RETENTION, openHousekeeping } from "../../../src/kb/resources/housekeeping.ts";
import type { Housekeeping } from "../../../src/kb/resources/housekeeping.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let running: Running;
let nowMs = Date.now();
afterEach(() => running.close());

/** Opens a service, and housekeeping whose sweeps the test runs itself. */
async function open(): Promise<Housekeeping> {
  nowMs = Date.now();
  running = await openRunning({ nowMs: () => nowMs });
  return openHousekeeping({
    records: running.store.records,
    queue: running.store.queue,
    files: await openFolder({ folder: join(running.stateDir, "uploads") }),
    turns: openSharedTurns(undefined, "", () => expect.unreachable()),
    retention: DEFAULT_RETENTION,
    nowMs: () => nowMs,
    onSwept: () => undefined,
    onProblem: (error) => {
      throw error;
    },
  });
}

const upload = async (text: string): Promise<string> =>
  (await running.send("POST", "/image/processing/upload", { body: fileForm(text) })).json.file_url;
const tokenOf = (url: string): string => new URL(url).pathname.split("/")[2] ?? "";
const bytesAt = (token: string): boolean => existsSync(join(running.stateDir, "uploads", token));

describe("housekeeping", () => {
  it("removes the rows and bytes of files that no resource has used for a week", async () => {
    const housekeeping = await open();
    const unused = await upload("nobody's");
    const used = await upload("a resource's");
    const body = createBody({ content: undefined, url: used });
    const { json } = await running.send("POST", "/api/rag/resource", { body });
    const path = `/api/rag/resource/${json.data._id}`;
    nowMs += 6 * DAY_MS;
    expect((await housekeeping.sweep()).files).toBe(0);
    nowMs += 2 * DAY_MS;
    expect((await housekeeping.sweep()).files).toBe(1);
    expect([bytesAt(tokenOf(unused)), bytesAt(tokenOf(used))]).toEqual([false, true]);
    expect((await running.send("GET", unused)).status).toBe(404);
    const late = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url: unused }),
    });
    expect(late).toMatchObject({ status: 400, json: { error: { field: "url" } } });

    // A replaced file counts as unused from the update, not from its upload.
    const other = await upload("another one");
    await running.send("PUT", path, { body: { url: other } });
    nowMs += 6 * DAY_MS;
    expect((await housekeeping.sweep()).files).toBe(0);
    nowMs += 2 * DAY_MS;
    expect((await housekeeping.sweep()).files).toBe(1);
    expect([bytesAt(tokenOf(used)), bytesAt(tokenOf(other))]).toEqual([false, true]);
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it.each([
    ["create", "POST", "/api/rag/resource", {}],
    ["queued create", "POST", "/api/rag/resource", { prefer: "respond-async" }],
    ["update", "PUT", undefined, {}],
  ])("housekeeping does not remove a file that a %s reads", async (_name, method, path, headers) => {
    await open();
    const url = await upload("old, and needed now");
    const before = createBody({ content: undefined, url: await upload("before") });
    const { json } = await running.send("POST", "/api/rag/resource", { body: before });
    await running.service.close();
    nowMs += 8 * DAY_MS;
    const found = Promise.withResolvers<void>();
    const swept = Promise.withResolvers<void>();
    // The sweep finds the file unused; the write that uses it follows after the sweep.
    const late = async (): Promise<void> => {
      found.resolve();
      await swept.promise;
    };
    running = await openRunning({
      stateDir: running.stateDir,
      nowMs: () => nowMs,
      wrapStore: (store) =>
        withMethods(store, {
          records: {
            unusedFiles: async (...given) => {
              await found.promise;
              return store.records.unusedFiles(...given);
            },
            createResource: async (...given) => {
              await late();
              return store.records.createResource(...given);
            },
            enqueueCreate: async (...given) => {
              await late();
              return store.records.enqueueCreate(...given);
            },
            updateResource: async (...given) => {
              await late();
              return store.records.updateResource(...given);
            },
          },
          queue: {
            purgeFailed: async (...given) => {
              swept.resolve();
              return store.queue.purgeFailed(...given);
            },
          },
        }),
    });
    const here = url.replace(new URL(url).origin, running.url);
    const body = method === "PUT" ? { url: here } : createBody({ content: undefined, url: here });
    const made = await running.send(method, path ?? `/api/rag/resource/${json.data._id}`, { body, headers });
    expect(made.status).toBeLessThan(300);
    expect((await running.send("GET", here)).text).toBe("old, and needed now");
  });

  it("housekeeping goes on with the other removals when one fails, and reports that", async () => {
    await open();
    const unused = await upload("nobody's");
    const housekeeping = openHousekeeping({
      records: { ...running.store.records, sweepAnswers: () => Promise.reject(new Error("busy")) },
      queue: running.store.queue,
      files: await openFolder({ folder: join(running.stateDir, "uploads") }),
      turns: openSharedTurns(undefined, "", () => expect.unreachable()),
      retention: DEFAULT_RETENTION,
      nowMs: () => nowMs,
      onSwept: () => undefined,
      onProblem: () => undefined,
    });
    nowMs += 8 * DAY_MS;
    await expect(housekeeping.sweep()).rejects.toThrow("busy");
    expect(bytesAt(tokenOf(unused))).toBe(false);
  });

  it("housekeeping does not remove an upload within an hour, however short the retention", async () => {
    await open();
    const eager = openHousekeeping({
      records: running.store.records,
      queue: running.store.queue,
      files: await openFolder({ folder: join(running.stateDir, "uploads") }),
      turns: openSharedTurns(undefined, "", () => expect.unreachable()),
      retention: { ...DEFAULT_RETENTION, unusedFileDays: 0 },
      nowMs: () => nowMs,
      onSwept: () => undefined,
      onProblem: () => undefined,
    });
    await upload("soon a resource's");
    nowMs += 59 * 60 * 1000;
    expect((await eager.sweep()).files).toBe(0);
    nowMs += 2 * 60 * 1000;
    expect((await eager.sweep()).files).toBe(1);
  });

  it("the next start recovers a removal that was interrupted between bytes and row", async () => {
    await open();
    const recorded = tokenOf(await upload("recorded"));
    const gone = tokenOf(await upload("gone"));
    const uploads = join(running.stateDir, "uploads");
    for (const token of [recorded, gone])
      await rename(join(uploads, token), join(uploads, "incoming", token));
    nowMs += 8 * DAY_MS;
    await running.store.records.removeUnusedFile(gone, new Date(nowMs).toISOString());
    await running.service.close();
    const again = await openRunning({ stateDir: running.stateDir });
    expect([bytesAt(recorded), bytesAt(gone)]).toEqual([true, false]);
    expect(await readdir(join(uploads, "incoming"))).toEqual([]);
    await again.close();
  });

  it("purges the records of deleted resources after 90 days, and serves them until then", async () => {
    const housekeeping = await open();
    const { json } = await running.send("POST", "/api/rag/resource", {
      body: createBody({ owner_id: "gone" }),
    });
    const { _id: id, collectionId } = json.data;
    const path = `/api/rag/resource/${id}`;
    const deleted = await running.send("DELETE", path);
    const list = async (query: string) => {
      const at = `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=gone${query}`;
      return (await running.send("GET", at)).json.data.resources;
    };
    const record = (await running.send("GET", path)).json.data;
    expect(record).toMatchObject({
      isDeleted: true,
      content: "",
      title: "Tides",
      deletedAt: deleted.json.data.updatedAt,
    });
    expect(await list("")).toEqual([]);
    expect(await list("&deleted=true")).toEqual([record]);
    expect(await list("&deleted=true&limit=1")).toEqual([record]);
    nowMs += 91 * DAY_MS;
    expect((await housekeeping.sweep()).records).toBe(1);
    expect((await running.send("GET", path)).status).toBe(404);
    expect(await list("&deleted=true")).toEqual([]);
  });

  it("purges all threads without a message for 90 days, while other threads are in use", async () => {
    const housekeeping = await open();
    const { records } = running.store;
    const { id: accountId } = await records.ensureAccount("local");
    const ask = async (threadId: string, messages: number): Promise<void> => {
      for (let sent = 0; sent < messages; sent += 1) {
        await records.addTurn({
          accountId,
          agentId: "desk",
          threadId,
          messageId: `${threadId}-${nowMs}-${sent}`,
          turn: { user: "Why?", answer: "Because.", shown: "{}" },
          files: [],
          reads: [],
          recalls: undefined,
          images: [],
          nowIso: new Date(nowMs).toISOString(),
        });
      }
    };
    const countTurns = async (threadId: string): Promise<number> => {
      const at = { accountId, agentId: "desk", threadId };
      const most = { turnsMax: 1000, charsMax: 100_000, imagesMax: 10, imagesSinceIso: "" };
      return (await records.thread({ ...at, ...most })).turns.length;
    };
    // More than the turns and threads that one transaction removes.
    await ask("long", 501);
    for (let thread = 0; thread < 5; thread += 1) await ask(`short-${thread}`, 1);
    await ask("used", 1);
    nowMs += 91 * DAY_MS;
    await ask("used", 1);
    expect((await housekeeping.sweep()).turns).toBe(506 + 6);
    expect([await countTurns("long"), await countTurns("short-0"), await countTurns("used")]).toEqual([
      0, 0, 2,
    ]);
    expect((await housekeeping.sweep()).turns).toBe(0);
  });

  it("removes the answers to idempotency keys after a day", async () => {
    const housekeeping = await open();
    const sent = { body: createBody(), headers: { "idempotency-key": "k" } };
    await running.send("POST", "/api/rag/resource", sent);
    nowMs += DAY_MS / 2;
    expect((await housekeeping.sweep()).answers).toBe(0);
    nowMs += DAY_MS;
    expect((await housekeeping.sweep()).answers).toBe(1);
  });
});
