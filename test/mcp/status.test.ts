import { afterAll, beforeAll, expect, it } from "vitest";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import type { LiveStatus, SourceStatus } from "../../src/wire/daemon-status.ts";
import { openRunning, type Running } from "../kb/service/running.ts";
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
  holdReason: null,
  degraded: null,
  paused: false,
};

let service: Running;
let mcp: McpGround;
let runs = true;
beforeAll(async () => {
  service = await openRunning();
  mcp = await openMcpGround({
    service: service.url,
    ownKey: service.key,
    files: NO_FILES,
    // The tool reads nothing else of it.
    daemon: { status: async () => (runs ? ({ sources: [SEA, QUIET] } as unknown as LiveStatus) : undefined) },
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
  runs = false;
  const { data, text } = await (await mcp.connect(service.key)).call("status");
  runs = true;
  expect(data).toEqual({ daemon: "stopped", folders: [] });
  expect(text).toContain("No daemon runs here");
});

it("status shows no folders to another key", async () => {
  const other = await mcp.connect(await service.issueKey("local", ["read"]));
  expect((await other.call("status")).data).toEqual({ daemon: "private", folders: [] });
});
