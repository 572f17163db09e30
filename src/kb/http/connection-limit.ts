import type { Socket } from "node:net";
import { networkOf } from "../../lib/public-address.ts";

/** The part of a socket that the limit uses. */
type Connection = Pick<Socket, "remoteAddress" | "destroy" | "once">;

/**
 * Closes each connection above `max` open ones from one address, and calls `onRefused`. A /64 of IPv6 counts as one
 * address: it is the smallest range that a customer gets, and has 2^64 addresses.
 */
export function limitConnections(
  server: { on(event: "connection", listener: (socket: Connection) => void): unknown },
  max: number,
  onRefused: () => void,
): void {
  const open = new Map<string, number>();
  server.on("connection", (socket) => {
    if (socket.remoteAddress === undefined) return; // closed already
    const network = networkOf(socket.remoteAddress);
    const count = (open.get(network) ?? 0) + 1;
    if (count > max) {
      onRefused();
      socket.destroy();
      return;
    }
    open.set(network, count);
    socket.once("close", () => {
      const left = (open.get(network) ?? 1) - 1;
      if (left === 0) open.delete(network);
      else open.set(network, left);
    });
  });
}
