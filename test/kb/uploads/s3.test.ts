import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { codeOf } from "../../../src/lib/failure.ts";
import { LEFTOVER_MS, type FileStore } from "../../../src/kb/uploads/file-store.ts";
import { openS3, type S3Options } from "../../../src/kb/uploads/s3.ts";
import { stubCredentials } from "./bucket-fixture.ts";
import { bytesOf, fileStoreContract, keyOf, put, readText } from "./file-store-contract.ts";
import { ACCESS_KEY, BUCKET, openS3Server, type S3Request, type S3Server } from "./s3-server.ts";

const tooLarge = (): Error => new Error("too large");
const TIMEOUTS = { answerMs: 10_000, transferMs: 10_000 };

let base: string;
let server: S3Server;
let opened = 0;
const problems: unknown[] = [];
const open = (options: Partial<S3Options> = {}): Promise<FileStore> =>
  openS3({
    bucket: BUCKET,
    prefix: "kb/",
    endpoint: server.endpoint,
    cacheFolder: join(base, String(++opened)),
    timeouts: TIMEOUTS,
    onProblem: (error) => problems.push(error),
    ...options,
  });
const later = (): Promise<FileStore> => open({ nowMs: () => Date.now() + LEFTOVER_MS + 1000 });
const names = (): string[] =>
  [...server.objects.keys()].map((key) => {
    expect(key).toMatch(/^kb\//);
    return key.slice("kb/".length);
  });
/** Fails the first requests to objects, then none. */
const failFirst = (count: number, fault: NonNullable<ReturnType<NonNullable<S3Server["fault"]>>>): void => {
  let left = count;
  server.fault = ({ method, key }) =>
    method === "GET" && key === "kb/one" && left-- > 0 ? fault : undefined;
};

beforeEach(async () => {
  stubCredentials();
  base = await mkdtemp(join(tmpdir(), "kbsync-s3-"));
  server = await openS3Server();
  problems.length = 0;
});
afterEach(async () => {
  await server.close();
  await rm(base, { recursive: true });
  vi.unstubAllEnvs();
});

fileStoreContract("a bucket", async () => ({
  open: (aheadMs = 0) => open({ nowMs: () => Date.now() + aheadMs }),
  names: async () => names(),
  close: async () => undefined,
}));

describe("a file in a bucket", () => {
  it("a file in a bucket is sent in parts if it is large, and arrives as it was", async () => {
    const text = "0123456789abcdef".repeat((20 * 1024 * 1024) / 16);
    const store = await open();
    await store.receive("one", bytesOf(text), text.length, tooLarge);
    await store.save("one");
    await store.publish("one");
    expect(server.requests.filter(({ query }) => query.has("partNumber"))).toHaveLength(3);
    const other = await open();
    expect((await readText(other, keyOf("one", text))) === text).toBe(true);
    expect(server.uploads.size).toBe(0);
  });

  it("arrives although connections break while it is sent, and leaves no parts if it cannot be", async () => {
    const text = "0123456789abcdef".repeat((20 * 1024 * 1024) / 16);
    const store = await open();
    await store.receive("one", bytesOf(text), text.length, tooLarge);
    const broken = new Set<string>();
    // Each request breaks off once.
    server.fault = ({ method, query }) => {
      const request = `${method} ${query.get("partNumber")}`;
      return broken.size === broken.add(request).size ? undefined : { kind: "drop" };
    };
    await store.save("one");
    expect(broken).toContain("PUT 3");
    expect(server.objects.get("kb/one")?.bytes.length).toBe(text.length);

    server.fault = ({ query }) =>
      query.get("partNumber") === "2" ? { kind: "status", status: 403, code: "AccessDenied" } : undefined;
    await store.receive("two", bytesOf(text), text.length, tooLarge);
    await expect(store.save("two")).rejects.toMatchObject({ code: "files_unavailable" });
    await vi.waitFor(() => expect(server.uploads.size).toBe(0));
    expect(server.objects.has("kb/two")).toBe(false);
  });

  it("a file in a bucket is fetched once for all who read it, and again once its copy had to go", async () => {
    const file = await put(await open(), "one");
    const store = await open({ cacheBytesMax: 8 });
    const gets = (): number =>
      server.requests.filter(({ method, key }) => method === "GET" && key === "kb/one").length;
    const before = gets();
    await Promise.all([1, 2, 3].map(() => readText(store, file)));
    await readText(store, file);
    expect(gets() - before).toBe(1);
    const two = await put(await open(), "two");
    await readText(store, two);
    await readText(store, file);
    expect(gets() - before).toBe(2);
  });

  it("a file in a bucket is read from the disk by the process that received it", async () => {
    const store = await open();
    const file = await put(store, "one");
    server.fault = () => ({ kind: "drop" });
    expect(await readText(store, file)).toBe("words");
  });

  it("a file in a bucket is fetched again if someone emptied the folder of copies", async () => {
    const store = await open();
    const file = await put(store, "one");
    await rm(join(base, String(opened), "files"), { recursive: true });
    expect(await readText(store, file)).toBe("words");
  });

  it.each([
    ["altered", "words".replace("w", "W")],
    ["cut off", "word"],
    ["longer", "words and more"],
  ])("a file in a bucket is never served if its object was %s", async (_name, bytes) => {
    const file = await put(await open(), "one");
    server.setObject("kb/one", bytes);
    const store = await open();
    let isServed = false;
    const served = store.use(file, async () => {
      isServed = true;
    });
    await expect(served).rejects.toMatchObject({ code: "file_damaged", retryable: false });
    expect(isServed).toBe(false);
    // Once the object is restored, the file is served.
    server.setObject("kb/one", "words");
    expect(await readText(store, file)).toBe("words");
  });

  it("a file in a bucket is read although the connection breaks in the middle, or the bucket throttles", async () => {
    const file = await put(await open(), "one");
    failFirst(2, { kind: "cut" });
    expect(await readText(await open(), file)).toBe("words");
    failFirst(2, { kind: "drop" });
    expect(await readText(await open(), file)).toBe("words");
    failFirst(1, { kind: "status", status: 503, code: "SlowDown" });
    expect(await readText(await open(), file)).toBe("words");
  });

  it("a file in a bucket is not taken for missing because the bucket is", async () => {
    const file = await put(await open(), "one");
    const store = await open({ bucket: "other" });
    await expect(readText(store, file)).rejects.toMatchObject({ code: "files_unavailable" });
    await expect(store.holds("one")).rejects.toMatchObject({ code: "files_unavailable" });
  });
});

describe("a bucket that fails", () => {
  it.each<[string, number, string, object]>([
    ["throttles", 503, "SlowDown", { code: "files_unavailable", retryAfterSeconds: 5 }],
    ["breaks", 500, "InternalError", { code: "files_unavailable", retryAfterSeconds: 5 }],
    ["refuses", 403, "AccessDenied", { code: "files_unavailable", retryAfterSeconds: 60 }],
    ["is not there", 404, "NoSuchBucket", { code: "files_unavailable", retryAfterSeconds: 60 }],
    ["is full", 507, "XMinioStorageFull", { code: "disk_full" }],
  ])("reports one that %s, and takes the upload later", async (_name, status, code, expected) => {
    const store = await open();
    await store.receive("one", bytesOf("words"), 100, tooLarge);
    server.fault = () => ({ kind: "status", status, code });
    await expect(store.save("one")).rejects.toMatchObject({ retryable: true, ...expected });
    expect(problems.map(codeOf)).toContain((expected as { code: string }).code);
    server.fault = undefined;
    await store.save("one");
    await store.publish("one");
    expect(names()).toEqual(["one"]);
  });

  it("a bucket that fails waits for no answer longer than its time, and leaves no transfer behind", async () => {
    const file = await put(await open(), "one");
    const store = await open({ timeouts: { answerMs: 300, transferMs: 300 } });
    server.fault = () => ({ kind: "hang" });
    const failure = { code: "files_unavailable", message: expect.stringContaining("within 0.3 s") };
    await expect(readText(store, file)).rejects.toMatchObject(failure);
    await expect(store.holds("one")).rejects.toMatchObject(failure);
    await store.receive("two", bytesOf("words"), 100, tooLarge);
    await expect(store.save("two")).rejects.toMatchObject(failure);
    server.fault = undefined;
    await vi.waitFor(async () => expect(await readText(store, file)).toBe("words"), { timeout: 10_000 });
  });

  it("makes nobody wait once the store is closed", async () => {
    const store = await open();
    await store.receive("one", bytesOf("words"), 100, tooLarge);
    server.fault = () => ({ kind: "hang" });
    const waiting = [store.save("one"), store.holds("one"), store.recover(async () => true)];
    const ends = Promise.allSettled(waiting);
    await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(2));
    store.close();
    for (const end of await ends)
      expect(end).toMatchObject({ status: "rejected", reason: { code: "files_unavailable" } });
    await expect(store.holds("one")).rejects.toMatchObject({ code: "files_unavailable" });
  });

  it("names the cause for the operator, and neither bucket nor key for the caller", async () => {
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "another");
    const store = await open();
    const failure = await store.holds("one").catch((error: unknown) => error);
    expect(String(failure)).toContain("SignatureDoesNotMatch");
    expect(String(failure)).not.toMatch(new RegExp(`${BUCKET}|kb/|${ACCESS_KEY.id}`));
  });

  it("says so without credentials", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
    const store = await open();
    await expect(store.holds("one")).rejects.toMatchObject({
      code: "files_unavailable",
      message: expect.stringContaining("CredentialsProviderError"),
    });
  });

  it("loses nothing when a removal fails between row and object", async () => {
    const store = await open();
    await put(store, "one");
    let isForgotten = false;
    server.fault = ({ method, key }) =>
      method === "DELETE" && key === "kb/one"
        ? { kind: "status", status: 403, code: "AccessDenied" }
        : undefined;
    const removal = store.remove("one", async () => (isForgotten = true));
    await expect(removal).rejects.toMatchObject({ code: "files_unavailable" });
    expect([isForgotten, names()]).toEqual([true, ["one", "incoming/one"]]);
    server.fault = undefined;
    await (await later()).recover(async () => false);
    expect(names()).toEqual([]);
  });
});

describe("recovery of a bucket", () => {
  it("removes nothing without a mark, even with a database that knows no file", async () => {
    const store = await open();
    await put(store, "one");
    expect(await (await later()).recover(async () => false)).toBe(0);
    expect(names()).toEqual(["one"]);
  });

  it("recovery of a bucket is not misled by a list that is out of date", async () => {
    const store = await open();
    const file = await put(store, "one");
    server.listed = [
      ["kb/incoming/one", Date.now()],
      ["kb/incoming/never", Date.now()],
    ];
    expect(await (await later()).recover(async (token) => token === "one")).toBe(2);
    expect(await readText(await open(), file)).toBe("words");
  });

  it("reads lists of more than one page", async () => {
    // Only those on the second page are old.
    const freshMs = Date.now() + LEFTOVER_MS;
    const fresh = Array.from({ length: 1000 }, (_, at) => [`kb/incoming/a${at}`, freshMs] as const);
    server.listed = [...fresh, ["kb/incoming/b", 0]];
    expect(await (await later()).recover(async () => false)).toBe(1);
  });

  it("removes the parts of an upload that a crash interrupted", async () => {
    server.setObject("kb/incoming/one", "");
    server.uploads.set("u", { key: "kb/one", parts: new Map() });
    server.uploads.set("v", { key: "kb/one-and-more", parts: new Map() });
    await (await later()).recover(async () => false);
    expect([...server.uploads.keys()]).toEqual(["v"]);
  });

  it("refuses to publish a file that another process removed while this one was stopped", async () => {
    let nowMs = Date.now();
    const store = await open({ nowMs: () => nowMs });
    await store.receive("one", bytesOf("words"), 100, tooLarge);
    await store.save("one");
    await (await later()).recover(async () => false);
    nowMs += LEFTOVER_MS;
    await expect(store.publish("one")).rejects.toMatchObject({ code: "ENOENT" });
  });
});

it("empties its folder when it opens", async () => {
  const store = await open();
  const { path } = await store.receive("one", bytesOf("words"), 100, tooLarge);
  await open({ cacheFolder: join(base, String(opened)) });
  await expect(readFile(path)).rejects.toMatchObject({ code: "ENOENT" });
});

it("signs what it sends, so that a body that changes on its way is refused", async () => {
  const store = await open();
  await put(store, "one");
  const bodies = server.requests.filter(({ method }: S3Request) => method === "PUT");
  expect(bodies.map(({ key }) => key)).toEqual(["kb/incoming/one", "kb/one"]);
});
