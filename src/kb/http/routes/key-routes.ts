import type { FastifyInstance } from "fastify";
import { KeyAnswer, KeyBody, KeysAnswer, NewKeyAnswer, RotateBody } from "../../../wire/key.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { createKey, listKeys, revokeKey, rotateKey, shownKey } from "../../keys/keys.ts";
import type { KeyRecord } from "../../store/accounts.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Keys";

/** Adds the operations on keys of the caller's account (additions): create, list, rotate, revoke. */
export function addKeyRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { kb } = parts;
  const oneKey = `${ROUTES.keys}/:id`;
  const shown = (record: KeyRecord) => shownKey(record, kb.nowMs());

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.keys,
    scope: "admin",
    doc: {
      summary: "Creates a key, which is shown only this once.",
      tag: TAG,
      body: KeyBody,
      answers: { 201: NewKeyAnswer },
    },
    handle: async (request, accountId) => {
      const { key, record } = await createKey(kb, accountId, readBody(KeyBody, request.body));
      return answer(201, "Key created successfully", { key, ...shown(record) });
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.keys,
    scope: "admin",
    doc: { summary: "Lists the keys of the account.", tag: TAG, answers: { 200: KeysAnswer } },
    handle: async (_request, accountId) => {
      const keys = await listKeys(kb, accountId);
      return answer(200, "Keys fetched successfully", { keys: keys.map(shown) });
    },
  });

  addOperation(server, parts, {
    method: "POST",
    url: `${oneKey}/rotate`,
    scope: "admin",
    doc: {
      summary: "Replaces a key by a new one; the previous key stays valid during the overlap.",
      tag: TAG,
      body: RotateBody,
      answers: { 201: NewKeyAnswer },
    },
    handle: async (request, accountId) => {
      const body = readBody(RotateBody, request.body ?? {});
      const { key, record, previous } = await rotateKey(kb, accountId, idOf(request), body);
      applyKeyChange(parts, accountId);
      return answer(201, "Key rotated successfully", { key, ...shown(record), previous: shown(previous) });
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: oneKey,
    scope: "admin",
    doc: { summary: "Revokes a key for good.", tag: TAG, answers: { 200: KeyAnswer } },
    handle: async (request, accountId) => {
      const revoked = await revokeKey(kb, accountId, idOf(request));
      applyKeyChange(parts, accountId);
      return answer(200, "Key revoked successfully", shown(revoked));
    },
  });
}

/** Applies a change of the account's keys from the next request on, and at once to its open streams. */
function applyKeyChange({ kb, keyring }: HttpParts, accountId: string): void {
  keyring.clear();
  kb.changeWaits.notify(accountId);
}
