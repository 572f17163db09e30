/** Types of messages: https://www.postgresql.org/docs/18/protocol-message-formats.html */
const QUERY = "Q".charCodeAt(0);
const SYNC = "S".charCodeAt(0);
const TERMINATE = "X".charCodeAt(0);

/** Messages that run at once: a simple query, or all up to Sync. */
export type Unit = Buffer;

interface UnitListener {
  readonly onStart: (database: string) => void;
  readonly onUnit: (unit: Unit) => void;
  readonly onEnd: () => void;
}

/** Returns a function that divides the bytes of a connection into units. */
export function readUnits({ onStart, onUnit, onEnd }: UnitListener): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  let hasStarted = false;
  let unit: Buffer[] = [];
  const onMessage = (found: Buffer): void => {
    if (!hasStarted) {
      hasStarted = true;
      return onStart(databaseOf(found));
    }
    if (found[0] === TERMINATE) return onEnd();
    unit.push(found);
    if (found[0] !== QUERY && found[0] !== SYNC) return;
    onUnit(Buffer.concat(unit));
    unit = [];
  };
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      // Only the message at the start has no type.
      const head = hasStarted ? 1 : 0;
      if (rest.length < head + 4) return;
      const length = head + rest.readInt32BE(head);
      if (rest.length < length) return;
      const found = rest.subarray(0, length);
      rest = rest.subarray(length);
      onMessage(found);
    }
  };
}

export function simpleQuery(statement: string): Unit {
  return message("Q", Buffer.from(`${statement}\0`));
}

/** Puts type and length before the body of a message. */
export function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** Returns the database that a startup message names. */
function databaseOf(startup: Buffer): string {
  const words = startup.toString("utf8", 8).split("\0");
  return words[words.indexOf("database") + 1] ?? "";
}
