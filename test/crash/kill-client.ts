import { type Dispatcher, FormData, Pool } from "undici";
import type { AccountState } from "../../src/wire/events.ts";
import { FIRST_STATE, queuesIn, readText } from "../kb/service/running.ts";
import { CHUNK_CHARS, textOf, titleOf, type Slot } from "./slots.ts";

/** An answer as the test reads it. */
export interface Answer {
  readonly status: number;
  // Read field by field; what is not there shows as undefined.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** A client of a service that may be killed at any moment: then its requests reject. */
export interface KillClient {
  send(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: object,
    headers?: object,
  ): Promise<Answer>;
  upload(text: string): Promise<string>;
  queues(): Promise<AccountState["queues"]>;
  close(): Promise<void>;
}

export const OWNER = "kills";

export function openKillClient(url: string, key: string, connections: number): KillClient {
  const pool = new Pool(url, { connections });
  const request = async (
    method: Dispatcher.HttpMethod,
    path: string,
    body: string | FormData | undefined,
    more: object,
  ) => {
    const answer = await pool.request({
      method,
      path,
      headers: { pauthkey: key, ...more },
      ...(body !== undefined && { body }),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, json: JSON.parse(text) as unknown };
  };
  return {
    send: (method, path, body, headers = {}) =>
      request(method, path, body === undefined ? undefined : JSON.stringify(body), {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      }),
    upload: async (text) => {
      const form = new FormData();
      form.append("file", new Blob([text]), "slot.txt");
      const { json } = (await request("POST", "/image/processing/upload", form, {})) as Answer;
      return json.file_url;
    },
    queues: async () => {
      const { body } = await pool.request({ method: "GET", path: "/v1/events", headers: { pauthkey: key } });
      return queuesIn(await readText(body, FIRST_STATE));
    },
    close: () => pool.destroy(),
  };
}

/** What a client may do to a slot. */
export type Act = "create" | "update" | "retitle" | "delete";

/**
 * Does one thing to a slot and notes what is known of it before and after. `later`: the answer comes before the work.
 * Rejects when the service is gone, and then what was meant stays open.
 */
export async function actOn(client: KillClient, slot: Slot, act: Act, later: boolean): Promise<void> {
  const prefer = later ? { prefer: "respond-async" } : {};
  const path = `/api/rag/resource/${slot.id ?? ""}`;
  switch (act) {
    case "create":
    case "update": {
      const edition = ++slot.made;
      slot.open = edition;
      const text = textOf(slot.number, edition);
      const body = slot.isFile ? { url: await client.upload(text) } : { content: text };
      const settings = { strategy: "recursive", chunkSize: CHUNK_CHARS, chunkOverlap: 0 };
      const fields = { title: titleOf(slot.number), description: "", settings, owner_id: OWNER };
      const answer =
        act === "create"
          ? await client.send(
              "POST",
              "/api/rag/resource",
              { ...fields, ...body, collection_details: slot.tier, metadata: { slot: slot.number } },
              prefer,
            )
          : await client.send("PUT", path, body, prefer);
      accept(answer, act === "create" ? [201, 202] : [200, 202]);
      slot.id = answer.json.data._id;
      slot.edition = edition;
      break;
    }
    case "retitle":
      accept(await client.send("PUT", path, { title: titleOf(slot.number) }), [200]);
      return;
    case "delete":
      slot.open = 0;
      accept(await client.send("DELETE", path), [200]);
      slot.id = undefined;
      slot.edition = 0;
  }
  slot.open = undefined;
}

function accept({ status, json }: Answer, statuses: readonly number[]): void {
  if (!statuses.includes(status)) throw new UnexpectedAnswer(`HTTP ${status}: ${JSON.stringify(json)}`);
}

/** The service answered something that no kill explains. */
export class UnexpectedAnswer extends Error {}
