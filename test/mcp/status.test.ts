import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import type { LiveStatus, SourceStatus } from "../../src/wire/daemon-status.ts";
import { silentProcess } from "../../src/sync/daemon/control/client.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type McpGround } from "./fixture.ts";

const SEA: Partial<SourceStatus> = {
  path: "/srv/sea",
  files: 9,
  searchable: 5,
  reading: 0,
  waiting: 3,
  failed: 1,
  held: 2,
  holdReason: "most of its files are gone",
};
const QUIET: Partial<SourceStatus> = {
  path: "/srv/quiet",
  files: 1,
  searchable: 1,
  reading: 0,
  waiting: 0,
  failed: 0,
  held: 0,
  unreadable: 0,
  holdReason: null,
  degraded: null,
  paused: false,
};

let service: Running;
let mcp: McpGround;
const RUNS = { sources: [SEA, QUIET] } as unknown as LiveStatus;
let status: () => LiveStatus | undefined;
beforeEach(() => {
  status = () => RUNS;
});
beforeAll(async () => {
  service = await openRunning();
  mcp = await openMcpGround({
    service: service.url,
    ownKey: service.key,
    files: NO_FILES,
    // The tool reads nothing else of it.
    daemon: { status: async () => status() },
  });
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

it("status returns how far each folder is synced, and what needs a person", async () => {
  const { data, text } = await (await mcp.connect(service.key)).call("status");
  const counts = { files: 9, searchable: 5, reading: 0, waiting: 3, failed: 1, held: 2 };
  expect(data).toEqual({
    daemon: "running",
    folders: [
      { folder: "/srv/sea", ...counts, problem: "most of its files are gone" },
      { folder: "/srv/quiet", files: 1, searchable: 1, reading: 0, waiting: 0, failed: 0, held: 0 },
    ],
  });
  expect(text).toContain(
    "/srv/sea: 5 of 9 files searchable, 3 waiting, 1 failed, 2 deletes held. most of its files are gone",
  );
});

it("status says if no daemon runs", async () => {
  status = () => undefined;
  const { data, text } = await (await mcp.connect(service.key)).call("status");
  expect(data).toEqual({ daemon: "stopped", folders: [] });
  expect(text).toContain("No daemon runs here");
});

it("search says which files are not searchable yet, and of a daemon that does not answer that it does not", async () => {
  await service.send("POST", "/api/rag/resource", { body: createBody({ content: "heron" }) });
  const client = await mcp.connect(service.key);
  const found = async (): Promise<unknown> => (await client.call("search", { query: "heron" })).data;
  expect(await found()).toMatchObject({
    results: [{}],
    note: "Not everything is searchable yet: 3 waiting.",
  });
  status = () => {
    throw silentProcess("daemon", 7);
  };
  const note = "Not everything here may be up to date: the daemon (process 7) does not answer.";
  expect(await found()).toMatchObject({ results: [{}], note });
});

it("status shows no folders to another key", async () => {
  const other = await mcp.connect(await service.issueKey("local", ["read"]));
  expect((await other.call("status")).data).toEqual({ daemon: "private", folders: [] });
});
