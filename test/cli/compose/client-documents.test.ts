import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDocumentReader } from "../../../src/cli/compose/client-documents.ts";

const { signal } = new AbortController();
let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((asked, answer) => {
    if (asked.url === "/away") answer.writeHead(302, { location: "/client.json" }).end();
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
  ])("is not read at %s", async (url) => {
    const read = openDocumentReader("test");
    await expect(read(new URL(url), signal)).rejects.toMatchObject({ code: "link_refused" });
  });

  it("is not read from a public name that leads into the private network", async () => {
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

  it("is read at its own address alone, and up to 64 KB", async () => {
    const read = openDocumentReader("test", { allow: ["127.0.0.1"] });
    expect(await read(new URL(`${origin}/client.json`), signal)).toBe('{"client_id":"x"}');
    await expect(read(new URL(`${origin}/away`), signal)).rejects.toMatchObject({ code: "link_refused" });
    await expect(read(new URL(`${origin}/large`), signal)).rejects.toThrow(/larger/);
  });
});
