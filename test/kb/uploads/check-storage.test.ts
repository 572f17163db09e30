import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkStorage } from "../../../src/kb/uploads/check-storage.ts";
import type { FileStorage } from "../../../src/kb/uploads/open-files.ts";
import { stubCredentials } from "./bucket-fixture.ts";
import { BUCKET, openS3Server, type S3Server } from "./s3-server.ts";

const { signal } = new AbortController();

let server: S3Server;
let storage: FileStorage;
beforeEach(async () => {
  stubCredentials();
  server = await openS3Server();
  storage = { kind: "bucket", bucket: BUCKET, prefix: "kb/", endpoint: server.endpoint };
});
afterEach(async () => {
  await server.close();
  vi.unstubAllEnvs();
});

describe("the check of a bucket", () => {
  it("finds nothing wrong with one that can be used, and leaves nothing in it", async () => {
    expect(await checkStorage(storage, signal)).toEqual([]);
    expect(server.objects.size).toBe(0);
    expect(server.requests.map(({ method }) => method)).toEqual(["PUT", "GET", "GET", "DELETE"]);
  });

  it.each([
    ["PUT", "AccessDenied"],
    ["GET", "AccessDenied"],
    ["DELETE", "AccessDenied"],
  ])("reports that %s is refused, with its cause and a remedy", async (refused, code) => {
    server.fault = ({ method }) => (method === refused ? { kind: "status", status: 403, code } : undefined);
    expect(await checkStorage(storage, signal)).toMatchObject([
      {
        check: "uploads-storage",
        level: "failure",
        subject: "s3://bucket/kb/",
        message: expect.stringContaining(code),
        remedy: expect.stringContaining("s3:PutObject"),
      },
    ]);
  });
});

describe("the check of a folder", () => {
  it("reports one that cannot be used, and leaves nothing in one that can", async () => {
    const folder = await mkdtemp(join(tmpdir(), "kbsync-storage-"));
    expect(await checkStorage({ kind: "folder", path: folder }, signal)).toEqual([]);
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
    const file = join(folder, "file");
    await writeFile(file, "");
    expect(await checkStorage({ kind: "folder", path: file }, signal)).toMatchObject([
      { check: "uploads-storage", level: "failure", subject: file },
    ]);
    await rm(folder, { recursive: true });
  });
});
