import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

describe("the disk of the service", () => {
  it("the disk of the service is shown to an admin key of the account of the machine", async () => {
    const key = await running.issueKey("local", ["admin"]);
    const { status, json } = await running.send("GET", "/v1/disk", { key });
    expect(status).toBe(200);
    expect(json.data.totalBytes).toBeGreaterThan(0);
    expect(json.data.freeBytes).toBeLessThanOrEqual(json.data.totalBytes);
  });

  it("the disk of the service is not shown to other accounts, as if there were no such operation", async () => {
    const key = await running.issueKey("tenant", ["admin"]);
    expect(await running.send("GET", "/v1/disk", { key })).toMatchObject({
      status: 404,
      json: { error: { code: "route_not_found" } },
    });
  });

  it("the disk of the service needs the scope admin", async () => {
    const key = await running.issueKey("local", ["read", "write", "chat"]);
    expect((await running.send("GET", "/v1/disk", { key })).status).toBe(403);
  });
});
