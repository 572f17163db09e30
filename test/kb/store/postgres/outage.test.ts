import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ROUTES } from "../../../../src/wire/routes.ts";
import type { Cluster } from "./cluster.ts";
import { isSkipped, newCluster } from "./databases.ts";
import { newSite, running, WAIT_MS, type RunningService, type Site } from "./program.ts";

const NOTE = { title: "note", description: "", content: "text", collection_details: "fastest" };

describe.skipIf(isSkipped())("the program without its database", () => {
  let cluster: Cluster;
  let site: Site;
  let service: RunningService | undefined;
  beforeEach(() => {
    cluster = newCluster();
    cluster.sql("CREATE DATABASE kb");
    site = newSite(cluster.url("kb"));
  });
  afterEach(async () => {
    await service?.stop();
    site.remove();
    await cluster.remove();
  });

  it("the program without its database waits for it when it starts, refuses requests while it is away, and goes on by itself", async () => {
    cluster.stop();
    const launched = site.launch("serve");
    await vi.waitFor(() => expect(launched.log()).toContain("the database does not answer"), WAIT_MS);
    cluster.start();
    service = await running(launched, site.stateDir);
    expect((await service.ask("POST", ROUTES.resource, NOTE)).status).toBe(201);
    cluster.stop("immediate");
    for (const [method, path, body] of [
      ["GET", ROUTES.collections, undefined],
      ["POST", ROUTES.resource, NOTE],
    ] as const) {
      const refused = await service.ask(method, path, body);
      expect(refused).toMatchObject({ status: 503, retryAfter: "1" });
      expect(JSON.stringify(refused.body)).not.toContain("postgres://");
    }
    expect((await service.ask("GET", "/readyz")).status).toBe(503);
    expect((await service.ask("GET", "/healthz")).status).toBe(200);
    // Long enough for several looks at the queues, none of which is news.
    await sleep(4000);
    cluster.start();
    await vi.waitFor(async () => expect((await service?.ask("GET", "/readyz"))?.status).toBe(200), WAIT_MS);
    expect((await service.ask("POST", ROUTES.resource, NOTE)).status).toBe(201);
    const log = service.log();
    expect(log.match(/WARN.*the database does not answer/g)).toHaveLength(2);
    expect(log.match(/the database answers again/g)).toHaveLength(2);
    expect(log).not.toContain("ERROR");
  });

  it("lets doctor, backup, status and key say so", async () => {
    await site.run("key", "list");
    expect((await site.run("doctor")).stdout).toMatch(/ok +store +PostgreSQL \d+\.\d+, 0 documents/);
    const backup = await site.run("backup", `${site.docs}-backup`);
    expect(backup).toMatchObject({ code: 2, stdout: "" });
    expect(backup.stderr).toContain("pg_dump");
    cluster.stop();
    const doctor = await site.run("doctor");
    expect(doctor).toMatchObject({ code: 1 });
    expect(doctor.stdout).toMatch(
      /failed +store +the database cannot be used\n +the database does not answer/,
    );
    expect(await site.run("key", "list")).toMatchObject({
      code: 75,
      stderr: expect.stringContaining("the database does not answer") as string,
    });
    expect((await site.run("status")).stderr).not.toContain("database");
  });
});
