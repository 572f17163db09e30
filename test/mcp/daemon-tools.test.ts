import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KbsyncError } from "../../src/lib/failure.ts";
import type { CallerDaemon } from "../../src/mcp/caller.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type McpGround } from "./fixture.ts";

const PLAN = {
  planned: Array.from({ length: 3 }, (_, at) => ({
    source: "/srv/sea",
    path: `${at}.md`,
    action: "create" as const,
    sends: { bytes: 40, chars: 40 },
  })),
  counts: { create: 3 },
  estimate: { documents: 3, bytes: 120, tokens: 30, unknown: 1, pictures: 0, cost: 0.5 },
};
const NONE = { documents: 0, chunks: 0, files: 0, requests: 0, messages: 0, turns: 0, images: 0 };

let service: Running;
let mcp: McpGround;
let readKey: string;
let otherKey: string;
let fileId: string;
/** What the daemon was asked to erase; `runs`: whether there is one. */
let erased: object[] = [];
/** The names of further backups that a daemon reports. */
let backups: string[] = [];
let runs = true;
let stillSynced = false;
const daemon: CallerDaemon = {
  plan: async (limit) => (runs ? { ...PLAN, planned: PLAN.planned.slice(0, limit) } : undefined),
  erase: async (request) => {
    if (stillSynced)
      throw new KbsyncError("sea.md is in the folder", { code: "still_synced", hint: "Delete it." });
    if (!runs) return undefined;
    erased.push(request);
    const remains = ["/srv/backup-1", ...backups].map((name) => {
      return { kind: "backup" as const, name, reason: "a backup from May" };
    });
    return { files: 1, texts: 2, activities: 3, service: { ...NONE, documents: 1, remains } };
  },
};

const create = async (change: object): Promise<string> =>
  (await service.send("POST", "/api/rag/resource", { body: createBody(change) })).json.data._id;

beforeAll(async () => {
  service = await openRunning();
  readKey = await service.issueKey("local", ["read"]);
  otherKey = await service.issueKey("local", ["read", "write"]);
  fileId = await create({ title: "The sea", metadata: { path: "sea.md" } });
  const synced = { owner_id: "synced", title: "Synced" };
  const body = createBody(synced);
  const { collectionId } = (await service.send("POST", "/api/rag/resource", { body })).json.data;
  mcp = await openMcpGround({
    service: service.url,
    ownKey: service.key,
    erases: true,
    daemon,
    files: {
      sources: [{ folder: "/srv/sea", ownerId: "synced", collectionId: collectionId }],
      fileOf: (id) => (id === fileId ? { folder: "/srv/sea", path: "sea.md" } : undefined),
      formerOwners: ["former"],
      documentsOf: (path) => (path === "sea.md" ? [fileId] : []),
      close: () => undefined,
    },
  });
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

describe("the tool plan_sync", () => {
  it("returns what a pass would send, and the first actions", async () => {
    const { call } = await mcp.connect(service.key);
    const { data, text } = await call("plan_sync", { limit: 1 });
    expect(data).toEqual({
      counts: PLAN.counts,
      estimate: PLAN.estimate,
      planned: [{ folder: "/srv/sea", path: "0.md", action: "create" }],
      next_cursor: "1",
    });
    expect(text).toBe(
      "Actions: 3 create.\nSends 3 documents, 120 bytes, about 30 tokens, not counting 1 whose text is not known (0 pictures or scans); embedding them costs about 0.5000.\ncreate /srv/sea/0.md\n[More actions: call plan_sync with cursor 1.]",
    );
  });

  it("pages through the actions, to the last one", async () => {
    const { call } = await mcp.connect(service.key);
    const paths: string[] = [];
    for (let cursor: string | null = "0"; cursor !== null;) {
      const { data } = await call("plan_sync", { limit: 2, cursor });
      paths.push(...data.planned.map(({ path }: { path: string }) => path));
      cursor = data.next_cursor;
    }
    expect(paths).toEqual(["0.md", "1.md", "2.md"]);
    expect((await call("plan_sync", { cursor: "x" })).text).toContain("(cursor_invalid)");
  });

  it("answers only the key that the folders are synced with, and says when no daemon runs", async () => {
    const other = await (await mcp.connect(otherKey)).call("plan_sync");
    expect([other.isError, other.text]).toEqual([true, expect.stringContaining("(daemon_private)")]);
    runs = false;
    const none = await (await mcp.connect(service.key)).call("plan_sync");
    runs = true;
    expect(none.text).toContain("(daemon_missing)");
  });
});

describe("the tool erase_document", () => {
  it("is there only if it is allowed, and is marked as destructive", async () => {
    const { client } = await mcp.connect(service.key);
    const { tools } = await client.listTools();
    const destructive = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
    expect(destructive).toMatchObject([{ name: "erase_document", annotations: { destructiveHint: true } }]);
  });

  it.each([["another title"], ["the sea"], ["true"], ["sea"]])(
    "erases nothing when %j is to confirm",
    async (confirm) => {
      const { call } = await mcp.connect(service.key);
      const { isError, text } = await call("erase_document", { document: fileId, confirm });
      expect([isError, text]).toEqual([true, expect.stringContaining("(erase_unconfirmed)")]);
      expect((await call("erase_document", { document: fileId, confirm: fileId })).isError).toBe(true);
      expect(erased).toEqual([]);
    },
  );

  it("takes no path, and says where the id is", async () => {
    erased = [];
    const { call } = await mcp.connect(service.key);
    for (const document of ["sea.md", "/srv/sea/sea.md", "/srv/sea", ".."]) {
      const { isError, text } = await call("erase_document", { document, confirm: "The sea" });
      expect([isError, text]).toEqual([true, expect.stringContaining("(document_unknown)")]);
      expect(text).toContain("list_changes");
    }
    expect(erased).toEqual([]);
  });

  it("refuses a document's id as its confirmation, even if that is its title", async () => {
    const id = await create({ title: "Twice" });
    await service.send("PUT", `/api/rag/resource/${id}`, { body: { title: id } });
    const { call } = await mcp.connect(otherKey);
    const { text } = await call("erase_document", { document: id, confirm: id });
    expect(text).toContain("(erase_unconfirmed)");
  });

  it("refuses a live document of another machine's folder, and erases it when it is deleted", async () => {
    erased = [];
    const id = await create({ title: "Far", metadata: { path: "far.md" } });
    const { call } = await mcp.connect(service.key);
    const request = { document: id, confirm: "Far" };
    expect((await call("erase_document", request)).text).toMatch(/another machine.*/s);
    expect((await call("erase_document", request)).text).toContain("(still_synced)");
    expect(erased).toEqual([]);
    await service.send("DELETE", `/api/rag/resource/${id}`);
    expect((await call("erase_document", request)).isError).toBe(false);
    expect(erased).toEqual([{ document: id }]);
  });

  it.each([["The sea"], ["sea.md"], ["/srv/sea/sea.md"]])(
    "has the daemon erase a document, confirmed by %s, and returns what remains",
    async (confirm) => {
      erased = [];
      const { call } = await mcp.connect(service.key);
      const { data, text } = await call("erase_document", { document: fileId, confirm });
      expect(erased).toEqual([{ document: fileId }]);
      expect(data).toEqual({
        document_id: fileId,
        service: { ...NONE, documents: 1 },
        machine: { files: 1, texts: 2, activities: 3 },
        remains: [{ kind: "backup", name: "/srv/backup-1", reason: "a backup from May" }],
        remains_total: 1,
        next_cursor: null,
      });
      expect(text).toContain("Left: backup /srv/backup-1: a backup from May");
    },
  );

  it("pages through what remains, and erases only once", async () => {
    backups = Array.from({ length: 400 }, (_, at) => `/srv/backup-of-the-sea-${at}`);
    erased = [];
    const { call } = await mcp.connect(service.key);
    const names: string[] = [];
    const request = { document: fileId, confirm: "The sea" };
    for (let cursor: string | null | undefined; cursor !== null;) {
      const { data } = await call("erase_document", { ...request, ...(cursor && { cursor }) });
      names.push(...data.remains.map(({ name }: { name: string }) => name));
      cursor = data.next_cursor;
    }
    expect(names).toEqual(["/srv/backup-1", ...backups]);
    expect(erased).toHaveLength(1);
    backups = [];
    const cursor = "00000000-0000-4000-8000-000000000000.0";
    expect((await call("erase_document", { ...request, cursor })).text).toContain("(cursor_invalid)");
    expect(erased).toHaveLength(1);
  });

  it("passes on that a file is still synced, and that no daemon runs", async () => {
    const { call } = await mcp.connect(service.key);
    const request = { document: fileId, confirm: "The sea" };
    stillSynced = true;
    expect((await call("erase_document", request)).text).toContain("(still_synced)\nDelete it.");
    stillSynced = false;
    runs = false;
    expect((await call("erase_document", request)).text).toContain("(daemon_missing)");
    runs = true;
  });

  it("erases a document of no folder with a key that may write, live or deleted, and with no other", async () => {
    const title = "Draft";
    const [live, deleted] = [await create({ title }), await create({ title })];
    await service.send("DELETE", `/api/rag/resource/${deleted}`);
    const { call: read } = await mcp.connect(readKey);
    const refused = await read("erase_document", { document: live, confirm: title });
    expect(refused.text).toContain("(scope_missing)");
    const { call } = await mcp.connect(otherKey);
    const first = await call("erase_document", { document: live, confirm: title });
    expect(first.data).toMatchObject({ service: { documents: 1 }, machine: null });
    const byId = await call("erase_document", { document: deleted, confirm: deleted });
    expect(byId.text).toContain("(erase_unconfirmed)");
    const second = await call("erase_document", { document: deleted, confirm: title });
    expect(second.data).toMatchObject({ service: { documents: 1 } });
    const never = "0".repeat(24);
    const unknown = await call("erase_document", { document: never, confirm: never });
    expect(unknown.text).toContain("(resource_not_found)");
    expect((await service.send("GET", `/api/rag/resource/${live}`)).status).toBe(404);
    const files = await call("erase_document", { document: fileId, confirm: "The sea" });
    expect(files.text).toContain("(daemon_private)");
  });
});
