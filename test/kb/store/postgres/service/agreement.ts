import { rowsOf } from "../databases.ts";
import { expect } from "vitest";
import type { Receiver } from "../../../webhooks/receiver.ts";
import { OWNER, type Client, type Known } from "./load.ts";

/** Checks that a service has each document as it was answered, and no other one. */
export async function expectDocuments(
  client: Client,
  at: number,
  collectionId: string,
  known: readonly Known[],
): Promise<void> {
  const stored = new Map<string, string>();
  for (let cursor = ""; ;) {
    const path = `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=${OWNER}&limit=1000${cursor}`;
    const { data } = (await client.send(at, "GET", path)).json;
    for (const { _id, content } of data.resources) stored.set(_id, content);
    if (data.nextCursor === null || data.nextCursor === undefined) break;
    cursor = `&cursor=${data.nextCursor}`;
  }
  const live = known.filter(({ isDeleted }) => !isDeleted);
  expect(Object.fromEntries(stored)).toEqual(
    Object.fromEntries(live.map(({ id, content }) => [id, content])),
  );
}

/** Checks that the database has a record of each document, deleted or not, and no other one. */
export async function expectRecords(url: string, known: readonly Known[]): Promise<void> {
  const records = await rowsOf<{ readonly id: string }>(url, "SELECT id FROM resource");
  expect(records.map(({ id }) => id).toSorted()).toEqual(known.map(({ id }) => id).toSorted());
}

/** Checks that each version of each document was announced, under one id. A message may arrive twice after a fault. */
export function expectMessages({ messages }: Receiver, known: readonly Known[]): void {
  const ids = new Map<string, Set<string>>();
  for (const { id, json } of messages) {
    if (json.type !== "resource.chunked") continue;
    const name = `${json.data._id} ${json.data.version}`;
    ids.set(name, (ids.get(name) ?? new Set()).add(id));
  }
  expect([...ids].filter(([, each]) => each.size > 1)).toEqual([]);
  const versions = known.map(({ id, version }) =>
    Array.from({ length: version }, (_, at) => `${id} ${at + 1}`),
  );
  const expected = new Set(versions.flat());
  expect([...ids.keys()].filter((name) => !expected.has(name))).toEqual([]);
  // A queued document may be deleted before it has a text.
  const live = known.filter(({ isDeleted }) => !isDeleted);
  const missing = live.flatMap(({ id, version }) => (ids.has(`${id} ${version}`) ? [] : [id]));
  expect(missing).toEqual([]);
}
