import assert from "node:assert/strict";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import {
  openRunning,
  type Answered,
  type Running,
  type RunningOptions,
  type Sent,
} from "../../../service/running.ts";
import { newDatabase } from "../databases.ts";

/** Services on one database, each with a store of its own, as in processes of their own. */
export interface Services {
  /** Address of the database. */
  readonly url: string;
  readonly all: readonly Running[];
  /** Sends a request to one of them, with the key of the first. */
  send(this: void, at: number, method: string, path: string, sent?: Sent): Promise<Answered>;
  close(): Promise<void>;
}

/** Opens services on a new database. They share the key of the first. */
export async function openServices(count: number, options: RunningOptions = {}): Promise<Services> {
  const url = await newDatabase();
  const all: Running[] = [];
  for (let at = 0; at < count; at += 1) {
    const store = await openPostgresStore(url);
    all.push(await openRunning({ ...options, store, sharesStore: true }));
  }
  return {
    url,
    all,
    send: (at, method, path, sent) => {
      const [running, first] = [all[at % count], all[0]];
      assert(running !== undefined && first !== undefined);
      return running.send(method, path, { key: first.key, ...sent });
    },
    close: async () => {
      for (const running of all) await running.close();
    },
  };
}
