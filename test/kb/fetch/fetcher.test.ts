import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFetcher } from "../../../src/kb/fetch/fetcher.ts";
import type { FetcherOptions, LinkAnswer } from "../../../src/kb/fetch/fetcher.ts";
import type { ResolveAll } from "../../../src/kb/fetch/guarded-dial.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openWeb } from "./web.ts";
import type { Web } from "./web.ts";

let web: Web;
beforeAll(async () => {
  web = await openWeb({
    "/page": (_request, response) => response.writeHead(200, { "content-type": "text/plain" }).end("hello"),
    "/always-304": (_request, response) => response.writeHead(304).end(),
    "/gzip": (_request, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("packed")),
    "/brotli": (_request, response) =>
      response.writeHead(200, { "content-encoding": "br" }).end(brotliCompressSync("packed")),
    "/bomb": (_request, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(5_000_000))),
    "/brotli-bomb": (_request, response) =>
      response.writeHead(200, { "content-encoding": "br" }).end(brotliCompressSync(Buffer.alloc(5_000_000))),
    "/not-gzip": (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("plain"),
    "/not-brotli": (_request, response) => response.writeHead(200, { "content-encoding": "br" }).end("plain"),
    "/half-brotli": (_request, response) =>
      response
        .writeHead(200, { "content-encoding": "br" })
        .end(brotliCompressSync("packed and long").subarray(0, 8)),
    "/half-gzip": (_request, response) =>
      response
        .writeHead(200, { "content-encoding": "gzip" })
        .end(gzipSync("packed and long").subarray(0, 12)),
    "/zstd": (_request, response) => response.writeHead(200, { "content-encoding": "zstd" }).end("x"),
    "/large": (_request, response) => response.writeHead(200).end(Buffer.alloc(200_000)),
    "/endless": (_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      };
      response.on("drain", more);
      more();
    },
    "/silent": () => undefined,
    "/stalls": (_request, response) => {
      response.writeHead(200).write("a beginning");
    },
    "/broken": (_request, response) => {
      response.writeHead(200, { "content-length": "100" }).write("a beginning");
      setImmediate(() => response.destroy());
    },
    "/gone": (_request, response) => response.writeHead(410).end(),
    "/nowhere": (_request, response) => response.writeHead(302).end(),
    "/ring": (_request, response) => response.writeHead(302, { location: "/ring" }).end(),
    "/1": (_request, response) => response.writeHead(301, { location: "/2" }).end(),
    "/2": (_request, response) => response.writeHead(302, { location: "3" }).end(),
    "/3": (_request, response) => response.writeHead(303, { location: "?4" }).end(),
    "/3?4": (_request, response) => response.writeHead(307, { location: "/5" }).end(),
    "/5": (_request, response) => response.writeHead(308, { location: "/page" }).end(),
    "/to-private": (_request, response) =>
      response.writeHead(302, { location: `http://127.0.0.2:${web.port}/page` }).end(),
    "/to-decimal": (_request, response) =>
      response.writeHead(302, { location: `http://2130706434:${web.port}/page` }).end(),
    "/to-mapped": (_request, response) =>
      response.writeHead(302, { location: `http://[::ffff:127.0.0.2]:${web.port}/page` }).end(),
    "/to-file": (_request, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end(),
    "/to-credentials": (_request, response) =>
      response.writeHead(302, { location: `http://user:secret@127.0.0.1:${web.port}/page` }).end(),
    "/to-nothing": (_request, response) => response.writeHead(302, { location: "http://[" }).end(),
  });
});
afterAll(() => web.close());

function open(options: Partial<FetcherOptions> = {}) {
  return openFetcher({
    allow: ["127.0.0.1"],
    agent: "kbsync-test",
    busy: () => new Error("busy"),
    bytesMax: 100_000,
    timeoutMs: 15_000,
    ...options,
  });
}

async function textOf({ body, url }: LinkAnswer) {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return { text: Buffer.concat(parts).toString(), path: url.pathname };
}

const get = (path: string, options?: Partial<FetcherOptions>) => open(options).fetch(web.url(path), textOf);

async function failureOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
  } catch (error) {
    if (error instanceof KbsyncError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error("it did not fail");
}

/** Resolves names from a table; each call returns the next answer. */
function names(
  table: Readonly<Record<string, readonly (readonly string[])[]>>,
): ResolveAll & { calls: number } {
  const resolve = Object.assign(
    ((host, _options, done) => {
      const answers = table[host] ?? [];
      const addresses = answers[Math.min(resolve.calls, answers.length - 1)] ?? [];
      resolve.calls += 1;
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
    }) as ResolveAll,
    { calls: 0 },
  );
  return resolve;
}

describe("responses", () => {
  it("a fetch returns text and address, and names the program", async () => {
    expect(await get("/page")).toEqual({ text: "hello", path: "/page" });
    expect(web.requests.at(-1)?.headers).toMatchObject({
      "user-agent": "kbsync-test",
      connection: "keep-alive",
    });
  });

  it.each(["/gzip", "/brotli"])("the fetcher decompresses the body of %s", async (path) => {
    expect(await get(path)).toMatchObject({ text: "packed" });
  });

  it("the fetcher follows five redirects, also relative ones", async () => {
    expect(await get("/1")).toMatchObject({ text: "hello", path: "/page" });
  });
});

describe("failures", () => {
  it.each([
    ["a status", "/gone", "the server answered 410 Gone"],
    ["a 304", "/always-304", "the server answered 304 Not Modified"],
    ["a redirect loop", "/ring", "it redirects more than 5 times"],
    ["a redirect without a location", "/nowhere", "the server answered 302 without a location"],
    ["a redirect to an invalid address", "/to-nothing", "the server redirects to an invalid address"],
    ["a content-length above the limit", "/large", "its answer is larger than 100000 bytes"],
    ["an endless body", "/endless", "its answer is larger than 100000 bytes"],
    ["a gzip bomb", "/bomb", "its answer is larger than 100000 bytes"],
    ["a Brotli bomb", "/brotli-bomb", "its answer is larger than 100000 bytes"],
    ["a body that is not gzip", "/not-gzip", "its answer cannot be decompressed"],
    ["a body that is not Brotli", "/not-brotli", "its answer cannot be decompressed"],
    ["truncated Brotli", "/half-brotli", "its answer cannot be decompressed"],
    ["truncated gzip", "/half-gzip", "its answer cannot be decompressed"],
    ["an unknown encoding", "/zstd", "the content encoding of its answer is not supported"],
    ["a closed connection", "/broken", "127.0.0.1 closed the connection before the end of its answer"],
  ])("a failed fetch names its cause: %s", async (_name, path, message) => {
    expect(await failureOf(get(path))).toEqual({ code: "link_failed", message });
  });

  it.each(["/silent", "/stalls"])("a fetch from a stalled server times out: %s", async (path) => {
    const failure = await failureOf(get(path, { timeoutMs: 300 }));
    expect(failure).toEqual({ code: "link_failed", message: "it took longer than 0.3 s" });
  });

  it("a failed fetch names a refused connection", async () => {
    const closed = await openWeb({});
    await closed.close();
    const failure = await failureOf(open().fetch(closed.url("/"), textOf));
    expect(failure).toEqual({ code: "link_failed", message: "127.0.0.1 refuses the connection" });
  });

  it("a failed fetch names an unknown host", async () => {
    const resolve: ResolveAll = (_host, _options, done) => {
      done(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }), []);
    };
    const failure = await failureOf(open({ resolve }).fetch(new URL("http://nowhere.example/"), textOf));
    expect(failure).toEqual({ code: "link_failed", message: "there is no host nowhere.example" });
  });

  it("an error of the consumer passes through unchanged", async () => {
    const full = Object.assign(new Error("no space"), { code: "ENOSPC" });
    const work = open().fetch(web.url("/page"), () => Promise.reject(full));
    await expect(work).rejects.toBe(full);
  });
});

describe("public addresses", () => {
  it.each(["127.0.0.2", "2130706434", "0x7f.2", "[::ffff:127.0.0.2]", "[::1]", "0"])(
    "the fetcher never dials %s",
    async (host) => {
      const before = web.requests.length;
      const failure = await failureOf(open().fetch(web.url("/page", host), textOf));
      expect(failure.code).toBe("link_refused");
      expect(failure.message).toMatch(/is not a public address$/);
      expect(web.requests).toHaveLength(before);
    },
  );

  it.each(["/to-private", "/to-decimal", "/to-mapped", "/to-file", "/to-credentials"])(
    "the fetcher does not follow the redirect %s",
    async (path) => {
      const before = web.requests.length;
      expect(await failureOf(get(path))).toMatchObject({ code: "link_refused" });
      expect(web.requests).toHaveLength(before + 1);
    },
  );

  it.each([
    ["a private address", ["10.0.0.1"]],
    ["one private address among public ones", ["93.184.216.34", "127.0.0.2"]],
    ["an IPv4-mapped address", ["::ffff:127.0.0.2"]],
    ["an address with a zone", ["fe80::1%eth0"]],
    ["no address", []],
  ])("the fetcher refuses a name that resolves to %s, and does not reveal it", async (_name, addresses) => {
    const resolve = names({ "inside.example": [addresses] });
    const failure = await failureOf(open({ resolve }).fetch(web.url("/page", "inside.example"), textOf));
    expect(failure).toEqual({ code: "link_refused", message: "inside.example is not a public address" });
  });

  it("the fetcher refuses a name that later resolves to a forbidden address", async () => {
    const resolve = names({ "rebind.example": [["127.0.0.1"], ["127.0.0.2"]] });
    const fetcher = open({ resolve });
    const url = web.url("/page", "rebind.example");
    expect(await fetcher.fetch(url, textOf)).toMatchObject({ text: "hello" });
    expect(await failureOf(fetcher.fetch(url, textOf))).toMatchObject({ code: "link_refused" });
    expect(resolve.calls).toBe(2);
  });

  it("the fetcher refuses localhost", async () => {
    const failure = await failureOf(open({ allow: [] }).fetch(web.url("/page", "localhost"), textOf));
    expect(failure).toEqual({ code: "link_refused", message: "localhost is not a public address" });
  });

  it("the fetcher dials a name on the allow-list at any address", async () => {
    const fetcher = open({ allow: ["localhost"] });
    expect(await fetcher.fetch(web.url("/page", "localhost"), textOf)).toMatchObject({
      text: "hello",
    });
    expect(await failureOf(fetcher.fetch(web.url("/page"), textOf))).toMatchObject({
      code: "link_refused",
    });
  });
});

it("the queue of fetches is bounded", async () => {
  const silent = await openWeb({ "/": () => undefined });
  const fetcher = open();
  // One fetch of the second account starts in an extra slot.
  const all = Array.from({ length: 32 + 1 + 1000 + 1 }, (_, at) =>
    fetcher.fetch(silent.url("/"), textOf, { tenant: [at < 700 ? "one" : "other"] }),
  );
  await expect(all.at(-1)).rejects.toThrow("busy");
  await silent.close();
  await Promise.allSettled(all);
  expect(silent.requests.length).toBeLessThanOrEqual(40);
});

it("an account with slow servers does not delay others, and cannot fill the queue", async () => {
  const slow = await openWeb({
    "/slow": () => undefined,
    "/quick": (_request, response) => response.end("hello"),
  });
  const fetcher = open();
  const abandoned = new AbortController();
  const ask = (): Promise<unknown> =>
    fetcher.fetch(slow.url("/slow"), textOf, {
      tenant: ["busy", "owner"],
      signal: abandoned.signal,
    });
  const busy = Array.from({ length: 200 }, ask);
  const quick = fetcher.fetch(slow.url("/quick"), textOf, { tenant: ["quiet", "owner"] });
  expect(await quick).toMatchObject({ text: "hello" });
  busy.push(...Array.from({ length: 32 + 750 - 200 }, ask));
  await expect(ask()).rejects.toThrow("busy");
  const other = fetcher.fetch(slow.url("/quick"), textOf, { tenant: ["quiet", "owner"] });
  expect(await other).toMatchObject({ text: "hello" });
  abandoned.abort(new Error("abandoned"));
  await Promise.allSettled(busy);
  await slow.close();
});
