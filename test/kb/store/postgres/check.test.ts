import { describe, expect, it } from "vitest";
import { checkPostgres } from "../../../../src/kb/store/postgres/check.ts";
import { isSkipped, newDatabase, query } from "./databases.ts";

describe.skipIf(isSkipped())("the check of a database", () => {
  it("says what the database holds, and what copies it", async () => {
    const url = await newDatabase();
    const report = await checkPostgres(url.replace("postgres@", "postgres:secret@"));
    expect(report).toMatchObject({ resources: 0, chunks: 0, standbys: 0, isArchived: false });
    expect(report.version).toMatch(/^\d+\.\d+$/);
    expect(report.bytes).toBeGreaterThan(1e6);
    expect(report.name).not.toContain("secret");
    expect(report.findings.map(({ check, level }) => `${level} ${check}`)).toEqual(["warning database-copy"]);
  });

  it("finds settings that lose what was acknowledged", async () => {
    const url = await newDatabase();
    const { pathname } = new URL(url);
    await query(url, `ALTER DATABASE ${pathname.slice(1)} SET synchronous_commit = off`);
    const { findings } = await checkPostgres(url);
    expect(findings.map(({ check }) => check)).toContain("database-acknowledged");
  });

  it("the check of a database works for a user who may do nothing but use the tables", async () => {
    const url = await newDatabase();
    const { pathname } = new URL(url);
    const role = `r${pathname.slice(1)}`;
    await query(url, `CREATE ROLE ${role} LOGIN`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`);
    const report = await checkPostgres(url.replace("postgres@", `${role}@`));
    expect(report.findings.map(({ check }) => check)).toEqual(["database-copy"]);
  });

  it("refuses a database without tables", async () => {
    await expect(checkPostgres(await newDatabase("template0"))).rejects.toMatchObject({
      code: "store_older",
    });
  });
});
