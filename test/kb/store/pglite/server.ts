import { PGlite } from "@electric-sql/pglite";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { message, readUnits, simpleQuery, type Unit } from "./protocol.ts";

/** End of an answer outside of transactions: the session is ready and idle. */
const IDLE = "I".charCodeAt(0);
/** Answer to a startup message: authenticated, texts are UTF-8, ready. */
const STARTED = Buffer.concat([
  message("R", Buffer.alloc(4)),
  message("S", Buffer.from("client_encoding\0UTF8\0")),
  message("Z", Buffer.from("I")),
]);

const ROLLBACK = simpleQuery("ROLLBACK");

/** A PGlite as a server of PostgreSQL. */
export interface PgliteServer {
  /** Returns the address of a database. It is a schema, which a statement in the database `public` creates. */
  url(this: void, database: string): string;
  close(this: void): Promise<void>;
}

interface Connection {
  readonly socket: Socket;
  /** Work that waits. */
  readonly units: Unit[];
  schema: string;
}

/**
 * Starts a PGlite in this process, and a server in front of it. PGlite has one session and one database: connections take turns between
 * transactions, and each database is a schema. So no two transactions run at once, no lock is ever waited for, and all connections
 * hold advisory locks as one: races pass here without being run. The server that PGlite's authors publish mixes the messages of
 * connections outside of transactions (https://github.com/electric-sql/pglite/issues/1046).
 */
export async function startPglite(): Promise<PgliteServer> {
  const session = openSession(await PGlite.create());
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const connection: Connection = { socket, units: [], schema: "" };
    sockets.add(socket);
    socket.setNoDelay(true);
    // `close` follows.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      session.leave(connection);
    });
    socket.on(
      "data",
      readUnits({
        onStart: (database) => {
          connection.schema = database;
          socket.write(STARTED);
        },
        onUnit: (unit) => session.run(connection, unit),
        onEnd: () => socket.end(),
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await session.close();
    },
  };
}

/** Runs the work of all connections in the session of a PGlite, one unit at a time, and no other's within a transaction. */
function openSession(pglite: PGlite) {
  /** Connections with work, in the order of their turns. */
  const waiting = new Set<Connection>();
  /** The connection whose transaction is open. */
  let owner: Connection | undefined;
  let schema = "";
  let isRunning = false;

  const runUnit = async (connection: Connection, unit: Unit): Promise<void> => {
    if (schema !== connection.schema) {
      schema = connection.schema;
      await pglite.execProtocolRaw(simpleQuery(`SET search_path = ${schema}`));
    }
    const answer = await pglite.execProtocolRaw(unit);
    connection.socket.write(answer);
    owner = answer.at(-1) === IDLE ? undefined : connection;
  };
  /** A transaction ends with its connection. */
  const nextUnit = (connection: Connection): Unit | undefined =>
    connection.units.shift() ?? (connection.socket.destroyed ? ROLLBACK : undefined);
  const runAll = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    for (;;) {
      const [first] = waiting;
      const next = owner ?? first;
      const unit = next && nextUnit(next);
      if (next === undefined || unit === undefined) break;
      waiting.delete(next);
      if (next.units.length > 0) waiting.add(next);
      await runUnit(next, unit);
    }
    isRunning = false;
  };
  return {
    run: (connection: Connection, unit: Unit): void => {
      connection.units.push(unit);
      waiting.add(connection);
      void runAll();
    },
    /** Forgets what a connection sent. */
    leave: (connection: Connection): void => {
      waiting.delete(connection);
      connection.units.length = 0;
      void runAll();
    },
    close: () => pglite.close(),
  };
}
