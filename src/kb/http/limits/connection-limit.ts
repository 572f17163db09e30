import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../../../lib/public-address.ts";

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

/** Maximum requests of a connection that wait for their answers. A client that sends ahead has some ten. */
const UNANSWERED_MAX = 100;

/**
 * Returns a function that counts a request until it is answered, and reports whether it may begin. Closes a connection with
 * more than `UNANSWERED_MAX`, and calls `onRefused`: Node reads requests for as long as no answer waits for its client, so
 * one connection could fill the memory with them.
 */
export function limitUnanswered(
  onRefused: (message: string) => void,
): (request: Pick<IncomingMessage, "socket">, response: Pick<ServerResponse, "once">) => boolean {
  const unanswered = new WeakMap<Socket, number>();
  return ({ socket }, response) => {
    // The rest of what had arrived when it was closed.
    if (socket.destroyed) return false;
    const count = (unanswered.get(socket) ?? 0) + 1;
    if (count > UNANSWERED_MAX) {
      onRefused(`more than ${UNANSWERED_MAX} requests of a connection wait for their answers`);
      socket.destroy();
      return false;
    }
    unanswered.set(socket, count);
    response.once("close", () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    return true;
  };
}
