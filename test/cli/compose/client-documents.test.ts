import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDocumentReader } from "../../../src/cli/compose/client-documents.ts";

const { signal } = new AbortController();
let server: Server;
let origin: string;
const paths: string[] = [];

beforeAll(async () => {
  server = createServer((asked, answer) => {
    paths.push(asked.url ?? "");
    const type = { "/text": "text/plain", "/none": "", "/special": "application/x.y+json; charset=utf-8" };
    answer.setHeader(
      "content-type",
      new Map(Object.entries(type)).get(asked.url ?? "") ?? "application/json",
    );
    if (asked.headers.accept !== "application/json") answer.writeHead(406).end();
    else if (asked.url === "/away") answer.writeHead(302, { location: "/client.json" }).end();
    else if (asked.url === "/large") answer.end(" ".repeat(64 * 1024 + 1));
    else answer.end('{"client_id":"x"}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // listens on a port
});
afterAll(() => server.close());

describe("a client metadata document", () => {
  it.each([
    "https://127.0.0.1/client.json",
    "https://0x7f000001/client.json",
    "https://[::1]/client.json",
    "https://[::ffff:10.0.0.1]/client.json",
    "https://localhost/client.json",
    "https://10.0.0.1/client.json",
    "https://169.254.169.254/latest/meta-data",
    "https://192.168.1.1:8443/client.json",
  ])("a client metadata document is not read at %s", async (url) => {
    const read = openDocumentReader("test");
    await expect(read(new URL(url), signal)).rejects.toMatchObject({ code: "link_refused" });
  });

  it("a client metadata document is not read from a public name that leads into the private network", async () => {
    const resolve = (
      _host: string,
      _options: unknown,
      done: (error: null, found: { address: string; family: number }[]) => void,
    ) =>
      done(null, [
        { address: "93.184.216.34", family: 4 },
        { address: "10.0.0.1", family: 4 },
      ]);
    const read = openDocumentReader("test", { allow: [], resolve });
    await expect(read(new URL("https://client.example/client.json"), signal)).rejects.toMatchObject({
      code: "link_refused",
    });
  });

  it("a client metadata document is read at its own address alone, as JSON, and up to 64 KB", async () => {
    const read = openDocumentReader("test", { allow: ["127.0.0.1"] });
    for (const path of ["/client.json", "/special"])
      expect(await read(new URL(origin + path), signal)).toBe('{"client_id":"x"}');
    for (const [path, message] of [
      ["/large", /larger/],
      ["/text", /not JSON/],
      ["/none", /not JSON/],
    ] as const)
      await expect(read(new URL(origin + path), signal)).rejects.toThrow(message);
    paths.length = 0;
    await expect(read(new URL(`${origin}/away`), signal)).rejects.toThrow(/redirects/);
    expect(paths).toEqual(["/away"]);
  });
});
