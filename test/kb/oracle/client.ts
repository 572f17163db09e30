import assert from "node:assert/strict";
import type { Tier } from "../../../src/wire/primitives.ts";
import type { Answered, Running } from "../service/running.ts";

const TIERS = ["fastest", "moderate", "high_accuracy"] as const;
const ACCOUNTS = ["local", "other"] as const;
const OWNERS = ["ann", "bob"] as const;

/** An owner's part of a collection of an account. */
export interface PartKey {
  readonly account: string;
  readonly ownerId: string;
  readonly tier: Tier;
}

/** All there are. */
export const PARTS: readonly PartKey[] = ACCOUNTS.flatMap((account) =>
  OWNERS.flatMap((ownerId) => TIERS.map((tier) => ({ account, ownerId, tier }))),
);

export function isOf(thing: PartKey, { account, ownerId, tier }: PartKey): boolean {
  return thing.account === account && thing.ownerId === ownerId && thing.tier === tier;
}

export function nameOf({ account, ownerId, tier }: PartKey): string {
  return `${account}/${ownerId}/${tier}`;
}

/** A document as the service lists it. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly shelf: number;
}

export interface Found {
  readonly id: string;
  readonly score: number;
  readonly payload: { readonly resourceId: string; readonly content: string; readonly title: string };
}

/** Requests of all accounts to one service. */
export interface Client {
  /** Throws where the service stops. */
  send(account: string, method: string, path: string, body?: object, headers?: object): Promise<Answered>;
  query(part: PartKey, body: object, docId?: string): Promise<readonly Found[]>;
  list(part: PartKey): Promise<readonly Listed[]>;
}

export async function openClient(running: Running): Promise<Client> {
  const keys = new Map<string, string>();
  const send: Client["send"] = async (account, method, path, body, headers) => {
    const sent = { key: keys.get(account) ?? "", headers: { ...headers }, ...(body && { body }) };
    const answered = await running.send(method, path, sent);
    if (answered.status === 503) throw new Error(`the service stops: ${answered.text}`);
    return answered;
  };
  /** Ids of collections, by account and tier. */
  const collections = new Map<string, string>();
  for (const account of ACCOUNTS) {
    keys.set(account, await running.issueKey(account));
    const { json } = await send(account, "GET", "/api/rag/collections");
    for (const { _id, details } of json.data.collections) collections.set(`${account} ${details}`, _id);
  }
  const collectionOf = ({ account, tier }: PartKey): string => collections.get(`${account} ${tier}`) ?? "";

  return {
    send,
    query: async (part, body, docId) => {
      const target =
        docId === undefined
          ? { collection_id: collectionOf(part), owner_id: part.ownerId }
          : { doc_id: docId };
      const { status, json, text } = await send(part.account, "POST", "/rag/query", { ...target, ...body });
      assert.equal(status, 200, text);
      return json.results;
    },
    list: async (part) => {
      const query = `collectionId=${collectionOf(part)}&ownerId=${part.ownerId}`;
      const { status, json, text } = await send(
        part.account,
        "GET",
        `/api/rag/resource/by-collection?${query}`,
      );
      assert.equal(status, 200, text);
      const records: { _id: string; title: string; content: string; metadata: { shelf: number } }[] =
        json.data.resources;
      return records.map(({ _id: id, title, content, metadata: { shelf } }) => ({
        id,
        title,
        content,
        shelf,
      }));
    },
  };
}
