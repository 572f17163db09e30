import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { databaseAddress, identityOf, type OwnService } from "../../../src/cli/compose/store.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-database-"));
  file = join(folder, "password");
});
afterEach(() => rmSync(folder, { recursive: true }));

const serviceOf = (database?: string, databasePasswordFile?: string): OwnService => ({
  host: "127.0.0.1",
  port: 0,
  database,
  databasePasswordFile,
});
const passwordOf = (address: string | undefined): string | null =>
  new URL(address ?? "").searchParams.get("password");

it("reads the password of the database from the service manager's credential, else from the file", () => {
  const service = serviceOf("postgres://a@h/kb?sslmode=verify-full", file);
  writeFileSync(file, "pass wörd%/+&\n");
  const address = databaseAddress(service, {});
  expect(passwordOf(address)).toBe("pass wörd%/+&");
  expect(address).toMatch(/^postgres:\/\/a@h\/kb\?sslmode=verify-full&password=/);
  mkdirSync(join(folder, "credentials"));
  const env = { CREDENTIALS_DIRECTORY: join(folder, "credentials") };
  expect(passwordOf(databaseAddress(service, env))).toBe("pass wörd%/+&");
  writeFileSync(join(folder, "credentials", "service.databasePassword"), "of the manager");
  expect(passwordOf(databaseAddress(service, env))).toBe("of the manager");
  expect(passwordOf(databaseAddress(serviceOf("postgres://a@h/kb"), env))).toBe("of the manager");
});

it("a database needs no password file, and keeps the password in its address", () => {
  expect(databaseAddress(serviceOf(), {})).toBeUndefined();
  expect(databaseAddress(serviceOf("postgres://a@h/kb"), {})).toBe("postgres://a@h/kb");
  expect(databaseAddress(serviceOf("postgres://a:b@h/kb", file), {})).toBe("postgres://a:b@h/kb");
});

it.each(["", "\n", "two\nlines\n", "x".repeat(5000)])(
  "refuses a password file with %j without its content",
  (text) => {
    writeFileSync(file, text);
    const ask = (): unknown => databaseAddress(serviceOf("postgres://a@h/kb", file), {});
    expect(ask).toThrow(`${file} contains no password`);
    expect(ask).not.toThrow(/two|xxx/);
  },
);

it("names a password file that is missing", () => {
  expect(() => databaseAddress(serviceOf("postgres://a@h/kb", file), {})).toThrow(
    `there is no password file ${file}`,
  );
});

it("a ledger knows the service by its database, whatever its host", () => {
  expect(identityOf(serviceOf())).toBe("embedded");
  expect(identityOf(serviceOf("postgres://a@h1/kb"))).toBe(identityOf(serviceOf("postgres://b@h2:5433/kb")));
  expect(identityOf(serviceOf("postgres://a@h1/kb"))).not.toBe(
    identityOf(serviceOf("postgres://a@h1/other")),
  );
});
