import { Client } from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { beforeStatement, queueLaw } from "../../../jobs/queue-law.ts";
import { isSkipped, newDatabase } from "../databases.ts";

type Query = (this: Client, ...given: unknown[]) => unknown;

const query = Reflect.get(Client.prototype, "query") as Query; // it has many signatures

/** Makes each statement of a transaction, in its order, wait for `beforeStatement`. A pool passes a callback to single ones. */
function pauseStatements(): void {
  const sent = new WeakMap<Client, Promise<unknown>>();
  const pausing: Query = function (...given) {
    const pause = beforeStatement.getStore();
    if (pause === undefined || typeof given.at(-1) === "function") return query.apply(this, given);
    const isEnd = given[0] === "ROLLBACK";
    const before = Promise.resolve(sent.get(this)).then(() => (isEnd ? undefined : pause()));
    sent.set(
      this,
      before.catch(() => undefined),
    );
    return before.then(() => query.apply(this, given));
  };
  Reflect.set(Client.prototype, "query", pausing);
}

describe.skipIf(isSkipped())("the queue of documents in PostgreSQL", () => {
  beforeAll(pauseStatements);
  afterAll(() => void Reflect.set(Client.prototype, "query", query));

  queueLaw(async () => {
    const url = await newDatabase();
    return [await openPostgresStore(url), await openPostgresStore(url)];
  }, 30);
});
