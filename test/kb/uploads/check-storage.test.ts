import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkStorage } from "../../../src/kb/uploads/check-storage.ts";
import { LEFTOVER_MS } from "../../../src/kb/uploads/file-store.ts";
import type { FileStorage } from "../../../src/kb/uploads/open-files.ts";
import { stubCredentials } from "./bucket-fixture.ts";
import { BUCKET, openS3Server, type S3Server } from "./s3-server.ts";

const { signal } = new AbortController();
const known = (token: string, sizeBytes: number) => ({ token, name: `${token}.txt`, sizeBytes, sha256: "0" });

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
    expect(await checkStorage(storage, undefined, { signal })).toEqual([]);
    expect(server.objects.size).toBe(0);
    expect(server.requests.map(({ method }) => method)).toEqual(["PUT", "GET", "GET", "DELETE"]);
  });

  it.each([
    ["PUT", "AccessDenied"],
    ["GET", "AccessDenied"],
    ["DELETE", "AccessDenied"],
  ])("reports that %s is refused, with its cause and a remedy", async (refused, code) => {
    server.fault = ({ method }) => (method === refused ? { kind: "status", status: 403, code } : undefined);
    expect(await checkStorage(storage, undefined, { signal })).toMatchObject([
      {
        check: "uploads-storage",
        level: "failure",
        subject: "s3://bucket/kb/",
        message: expect.stringContaining(code),
        remedy: expect.stringContaining("s3:PutObject"),
      },
    ]);
  });

  it("reports files that are missing or of another size, unless it is quick", async () => {
    server.setObject("kb/one", "words");
    server.setObject("kb/two", "word");
    const files = [known("one", 5), known("two", 5), known("three", 5)];
    const findings = await checkStorage(storage, async () => files, { signal });
    expect(findings.map(({ message }) => message)).toEqual([
      "the uploaded file two.txt has 4 bytes, expected 5",
      "the uploaded file three.txt is missing",
    ]);
    expect(await checkStorage(storage, async () => files, { signal, quick: true })).toEqual([]);
  });
});

describe("objects that no row names", () => {
  it("reports old ones without a mark, and nothing that may be in flight", async () => {
    const names = ["kb/lost", "kb/marked", "kb/incoming/marked", "kb/known"];
    for (const key of names) server.setObject(key, "words");
    const check = () => checkStorage(storage, async () => [known("known", 5)], { signal });
    expect(await check()).toEqual([]);
    vi.useFakeTimers({ now: Date.now() - LEFTOVER_MS - 60_000, toFake: ["Date"] });
    for (const key of names) server.setObject(key, "words");
    vi.useRealTimers();
    const message = "the bucket has a file that the store does not know, for example lost";
    expect(await check()).toMatchObject([{ level: "warning", subject: "s3://bucket/kb/", message }]);
  });
});

describe("the check of a folder", () => {
  it("reports one that cannot be used, and otherwise compares the files", async () => {
    const folder = await mkdtemp(join(tmpdir(), "kbsync-storage-"));
    expect(
      await checkStorage({ kind: "folder", path: folder }, async () => [known("one", 5)], { signal }),
    ).toMatchObject([{ check: "uploads", level: "damage", message: "the uploaded file one.txt is missing" }]);
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
    const file = join(folder, "file");
    await writeFile(file, "");
    expect(await checkStorage({ kind: "folder", path: file }, undefined, { signal })).toMatchObject([
      { check: "uploads-storage", level: "failure", subject: file },
    ]);
    await rm(folder, { recursive: true });
  });
});
