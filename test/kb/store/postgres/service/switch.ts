import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** An address that leads to one of several servers, as a load balancer or a name that moves does. */
export interface Switch {
  readonly port: number;
  /** Leads new connections to another socket, and ends those to the former one. */
  lead(this: void, socketPath: string): void;
  close(this: void): Promise<void>;
}

/** Opens a switch on this machine. */
export async function openSwitch(socketPath: string): Promise<Switch> {
  let target = socketPath;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const endAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    lead: (to) => {
      target = to;
      endAll();
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      endAll();
      await closed;
    },
  };
}
