import { once } from "node:events";
import type { Socket } from "node:net";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { guardedConnector } from "../../../src/kb/fetch/guarded-dial.ts";
import type { AddressRules } from "../../../src/lib/public-address.ts";

const server = createServer();
const sockets: Socket[] = [];
server.on("connection", (socket) => sockets.push(socket));
beforeEach(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
  await once(server, "close");
});

/** Rules that allow an address the first `times` times. */
function rulesAllowing(times: number): AddressRules {
  let calls = 0;
  return { allowsName: () => false, allowsAddress: () => ++calls <= times, mayAllow: () => true };
}

/** Dials and returns the error code, or "open". */
function dial(rules: AddressRules): Promise<string> {
  const { port } = server.address() as AddressInfo; // it listens on a port, not on a pipe
  const connect = guardedConnector(rules, (_host, _options, done) =>
    done(null, [{ address: "127.0.0.1", family: 4 }]),
  );
  const options = { hostname: "name.example", protocol: "http:", port: String(port) };
  return new Promise((resolve) => {
    connect(options, (error, socket) => {
      socket?.destroy();
      resolve(error === null ? "open" : String(Reflect.get(error, "code")));
    });
  });
}

it("the connector dials an allowed address and checks the peer of the socket", async () => {
  expect(await dial(rulesAllowing(2))).toBe("open");
});

it("the connector closes a socket whose peer is not allowed, even if its name resolved to an allowed address", async () => {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  expect(await dial(rulesAllowing(1))).toBe("link_refused");
  const [socket] = await accepted;
  socket.resume();
  if (!socket.closed) await once(socket, "close");
});
