import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { request } from "undici";
import { connectPool, openAgent } from "../../src/lib/proxy.ts";

let proxy: Server;
let seen: string[];
let address: string;

beforeEach(async () => {
  seen = [];
  // It answers for every host, and refuses every tunnel.
  proxy = createServer((incoming, answer) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    answer.end("by proxy");
  });
  proxy.on("connect", (incoming, socket) => {
    seen.push(`CONNECT ${incoming.url}`);
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
afterEach(() => void proxy.close());

describe("with HTTP_PROXY and HTTPS_PROXY", () => {
  const env = (more = {}) => ({ HTTP_PROXY: address, HTTPS_PROXY: address, ...more });

  it("a pool sends its requests to the proxy", async () => {
    const pool = connectPool("http://kb.example", { connections: 2 }, env());
    const { body } = await pool.request({ method: "GET", path: "/v1/health" });
    expect(await body.text()).toBe("by proxy");
    expect(seen).toEqual(["GET http://kb.example/v1/health"]);
    await pool.destroy();
  });

  it("an https address is reached through a tunnel", async () => {
    const pool = connectPool("https://kb.example", {}, env());
    await expect(pool.request({ method: "GET", path: "/" })).rejects.toThrow("502");
    expect(seen).toEqual(["CONNECT kb.example:443"]);
    await pool.destroy();
  });

  it("an agent does the same", async () => {
    const agent = openAgent({ connections: 2 }, env());
    const { body } = await request("http://kb.example/a", { dispatcher: agent });
    expect(await body.text()).toBe("by proxy");
    await agent.destroy();
  });

  it("this machine and the hosts of NO_PROXY are reached directly", async () => {
    const direct = createServer((_, answer) => answer.end("direct")).listen(0, "127.0.0.1");
    await once(direct, "listening");
    const { port } = direct.address() as AddressInfo;
    for (const [origin, more] of [
      [`http://127.0.0.1:${port}`, {}],
      [`http://localhost:${port}`, {}],
      [`http://127.0.0.2:${port}`, { NO_PROXY: "kb.example, 127.0.0.2" }],
    ] as const) {
      const agent = openAgent({}, env(more));
      const answer = request(origin, { dispatcher: agent }).then(async ({ body }) => body.text());
      await expect(answer.catch((error: Error) => error.message)).resolves.toMatch(/direct|ECONNREFUSED/);
      await agent.destroy();
    }
    expect(seen).toEqual([]);
    direct.close();
  });
});
