import { EventEmitter } from "node:events";
import { Socket } from "node:net";
import { expect, it } from "vitest";
import { limitConnections } from "../../../../src/kb/http/limits/connection-limit.ts";

function openLimited(max: number) {
  const server = new EventEmitter<{ connection: [Socket] }>();
  let refused = 0;
  limitConnections(server, max, () => (refused += 1));
  return {
    refused: () => refused,
    connect: (address: string | undefined): Socket => {
      const socket = Object.defineProperty(new Socket(), "remoteAddress", { value: address });
      server.emit("connection", socket);
      return socket;
    },
  };
}

it.each([
  ["one IPv4 address", ["192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"], true],
  ["adjacent IPv4 addresses", ["192.0.2.1", "192.0.2.2", "192.0.2.3"], false],
  ["one /64 of IPv6", ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::1"], true],
  ["adjacent IPv6 networks", ["2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"], false],
  ["connections that are closed already", [undefined, undefined, undefined], false],
] as const)("a limit of two connections of %s closes the third", (_name, addresses, isRefused) => {
  const { connect, refused } = openLimited(2);
  const sockets = addresses.map((address) => connect(address));
  expect(sockets.map((socket) => socket.destroyed)).toEqual([false, false, isRefused]);
  expect(refused()).toBe(isRefused ? 1 : 0);
});

it("frees a slot when a connection closes, but not when a connection is refused", async () => {
  const { connect } = openLimited(1);
  const first = connect("192.0.2.1");
  const refused = connect("192.0.2.1");
  await new Promise((resolve) => refused.once("close", resolve));
  expect(connect("192.0.2.1").destroyed).toBe(true);
  first.destroy();
  await new Promise((resolve) => first.once("close", resolve));
  expect(connect("192.0.2.1").destroyed).toBe(false);
  expect(connect("192.0.2.1").destroyed).toBe(true);
});
