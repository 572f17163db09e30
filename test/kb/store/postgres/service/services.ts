import assert from "node:assert/strict";
import { ALL_SCOPES } from "../../../../../src/kb/keys/keys.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import {
  openRunning,
  type Answered,
  type Running,
  type RunningOptions,
  type Sent,
} from "../../../service/running.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { newDatabase } from "../databases.ts";

/** Services on one database, each with a store of its own, as in processes of their own. */
export interface Services {
  /** Address of the database. */
  readonly url: string;
  readonly all: readonly Running[];
  store(this: void, at: number): Store;
  /** Sends a request to one of them, with a key of all scopes. */
  send(this: void, at: number, method: string, path: string, sent?: Sent): Promise<Answered>;
  close(): Promise<void>;
}

/** Opens services on a new database. */
export async function openServices(count: number, options: RunningOptions = {}): Promise<Services> {
  const url = await newDatabase();
  const all: Running[] = [];
  for (let at = 0; at < count; at += 1) {
    const store = await openPostgresStore(url);
    all.push(await openRunning({ ...options, store, sharesStore: true }));
  }
  const key = (await all[0]?.issueKey("local", ALL_SCOPES)) ?? null;
  return {
    url,
    all,
    store: (at) => {
      const running = all[at];
      assert(running !== undefined);
      return running.store;
    },
    send: (at, method, path, sent) => {
      const running = all[at % count];
      assert(running !== undefined);
      return running.send(method, path, { key, ...sent });
    },
    close: async () => {
      for (const running of all) await running.close();
    },
  };
}
