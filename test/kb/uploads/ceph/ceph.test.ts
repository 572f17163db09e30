import { CreateBucketCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { checkStorage } from "../../../../src/kb/uploads/check-storage.ts";
import { LEFTOVER_MS, type FileStore } from "../../../../src/kb/uploads/file-store.ts";
import { openS3 } from "../../../../src/kb/uploads/s3.ts";
import { stubCredentials } from "../bucket-fixture.ts";
import { bytesOf, fileStoreContract, keyOf, put, readText } from "../file-store-contract.ts";
import { findCeph, startGateway, type Gateway } from "./gateway.ts";

const tooLarge = (): Error => new Error("too large");
const programs = findCeph();
if (programs === undefined) {
  process.stderr.write(
    "The tests of a bucket in Ceph are skipped. Ceph is missing: set KBSYNC_TEST_CEPH to the folder of its programs, which " +
      "`npm run --silent unpack:servers -- FOLDER` unpacks and prints\n",
  );
}

/** The store of files against a server of S3 that is not ours, and checks signatures and parts by itself. */
describe.skipIf(programs === undefined)("a bucket in Ceph", () => {
  let gateway: Gateway;
  let client: S3Client;
  let base: string;
  let made = 0;
  let bucket: string;

  beforeAll(async () => {
    stubCredentials();
    base = await mkdtemp(join(tmpdir(), "kbsync-s3-"));
    gateway = await startGateway(programs ?? "");
    client = new S3Client({ endpoint: gateway.endpoint, region: "us-east-1", forcePathStyle: true });
  });
  afterAll(async () => {
    client.destroy();
    await gateway.remove();
    await rm(base, { recursive: true });
    vi.unstubAllEnvs();
  });
  beforeEach(async () => {
    bucket = `bucket-${++made}`;
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
  });

  const open = (aheadMs = 0, Bucket = bucket): Promise<FileStore> =>
    openS3({
      bucket: Bucket,
      prefix: "kb/",
      endpoint: gateway.endpoint,
      cacheFolder: join(base, String(++made)),
      onProblem: () => undefined,
      nowMs: () => Date.now() + aheadMs,
    });
  const names = async (): Promise<string[]> => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
    return Contents.map(({ Key = "" }) => Key.replace(/^kb\//, ""));
  };
  const setObject = async (key: string, text: string): Promise<void> => {
    await client.send(
      new PutObjectCommand({ Bucket: bucket, Key: `kb/${key}`, Body: text, ContentLength: text.length }),
    );
  };

  fileStoreContract("Ceph", async () => ({ open, names, close: async () => undefined }));

  it("a file in Ceph is sent in parts if it is large, and arrives as it was", async () => {
    const text = "0123456789abcdef".repeat((20 * 1024 * 1024) / 16);
    const store = await open();
    await store.receive("one", bytesOf(text), text.length, tooLarge);
    await store.save("one");
    await store.publish("one");
    expect((await readText(await open(), keyOf("one", text))) === text).toBe(true);
    expect(await names()).toEqual(["one"]);
  });

  it("a file in Ceph is never served if its object was altered", async () => {
    const file = await put(await open(), "one");
    await setObject("one", "Words");
    await expect(readText(await open(), file)).rejects.toMatchObject({ code: "file_damaged" });
    await setObject("one", "words");
    expect(await readText(await open(), file)).toBe("words");
  });

  it("a file in Ceph is not taken for missing because the bucket is, or because the key is wrong", async () => {
    const file = await put(await open(), "one");
    const store = await open(0, "other");
    const noBucket = { code: "files_unavailable", message: expect.stringContaining("NoSuchBucket") };
    await expect(store.holds("one")).rejects.toMatchObject(noBucket);
    await expect(readText(store, file)).rejects.toMatchObject(noBucket);
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "another");
    const refused = (await open()).holds("one").finally(stubCredentials);
    await expect(refused).rejects.toMatchObject({
      code: "files_unavailable",
      message: expect.stringContaining("SignatureDoesNotMatch"),
    });
  });

  it("recovery of a bucket in Ceph reads lists of more than one page", async () => {
    const tokens = Array.from({ length: 1010 }, (_, at) => `t${at}`);
    for (let at = 0; at < tokens.length; at += 50)
      await Promise.all(tokens.slice(at, at + 50).map((token) => setObject(`incoming/${token}`, "")));
    const later = await open(LEFTOVER_MS + 60_000);
    expect(await later.recover(async (token) => tokens.includes(token))).toBe(tokens.length);
    expect(await names()).toEqual([]);
  });

  it("the check of a bucket in Ceph finds nothing wrong, and leaves nothing in it", async () => {
    const storage = { kind: "bucket", bucket, prefix: "kb/", endpoint: gateway.endpoint } as const;
    const { signal } = new AbortController();
    expect(await checkStorage(storage, signal)).toEqual([]);
    expect(await names()).toEqual([]);
  });
});
