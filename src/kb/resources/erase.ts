import { setTimeout as sleep } from "node:timers/promises";
import type { ErasureReport, Remainder } from "../../wire/erasure.ts";
import type { Erased, OwnerKey } from "../store/erasure.ts";
import { nowIso, type KnowledgeBase } from "./knowledge-base.ts";
import { endWaits } from "./remove.ts";

/** Resources of an owner that are read at a time. */
const READ_RESOURCES = 500;
/** Resources that one transaction erases, so that other writes do not wait long. */
const BATCH_RESOURCES = 20;
/** Least age of an upload without a resource that is removed: the create that uses it needs time to arrive. */
const UPLOADED_FOR_MS = 60 * 60 * 1000;
/** How often the removal of a file that is being read is tried again, and after how long. */
const FILE_TRIES = 20;
const FILE_RETRY_MS = 100;

/**
 * Erases resources, live or deleted, with everything that was made from them (an addition). Resolves when nothing of them is left in
 * the store's files and among the uploads, except what the report names. A repetition after a crash completes it; ids that the
 * account does not have count as erased before.
 */
export async function eraseResources(
  kb: KnowledgeBase,
  accountId: string,
  ids: readonly string[],
): Promise<ErasureReport> {
  const sum = await eraseAll(kb, accountId, ids, false);
  const { files, remains } = await eraseFiles(kb, accountId, ids);
  await kb.scrub(accountId);
  return reportOf(sum, files, remains);
}

/** Erases all resources of an owner, and the owner's name, as `eraseResources` does. */
export async function eraseOwner(kb: KnowledgeBase, at: OwnerKey): Promise<ErasureReport> {
  let sum = NOTHING;
  let files = 0;
  const remains: Remainder[] = [];
  for (;;) {
    const ids = await kb.records.resourcesOf({ ...at, limit: READ_RESOURCES });
    if (ids.length === 0) break;
    sum = added(sum, await eraseAll(kb, at.accountId, ids, true));
    const erased = await eraseFiles(kb, at.accountId, ids);
    files += erased.files;
    remains.push(...erased.remains);
  }
  await kb.records.eraseOwner(at);
  // Uploads without a resource, also if the owner had none.
  const { files: unused, remains: left } = await eraseFiles(kb, at.accountId, []);
  remains.push(...left);
  await kb.scrub(at.accountId);
  return reportOf(sum, files + unused, remains);
}

const NOTHING: Erased = {
  documents: 0,
  chunks: 0,
  requests: 0,
  messages: 0,
  turns: 0,
  images: 0,
  unknownTurns: 0,
};

function added(a: Erased, b: Erased): Erased {
  return {
    documents: a.documents + b.documents,
    chunks: a.chunks + b.chunks,
    requests: a.requests + b.requests,
    messages: a.messages + b.messages,
    turns: a.turns + b.turns,
    images: a.images + b.images,
    // A count of all that are left.
    unknownTurns: b.unknownTurns,
  };
}

async function eraseAll(
  kb: KnowledgeBase,
  accountId: string,
  ids: readonly string[],
  hidesOwner: boolean,
): Promise<Erased> {
  let sum = NOTHING;
  const erase = async (some: readonly string[]): Promise<void> => {
    const erased = await kb.records.eraseResources({ accountId, ids: some, hidesOwner, nowIso: nowIso(kb) });
    sum = added(sum, erased);
  };
  for (let at = 0; at < ids.length; at += BATCH_RESOURCES) await erase(ids.slice(at, at + BATCH_RESOURCES));
  // A change that was in progress ends without a resource, but may have noted its request or the fetch of its link.
  for (const id of ids) await kb.turns.run(`${accountId}/${id}`, async () => undefined);
  await erase(ids);
  for (const id of ids) endWaits(kb, { accountId, id });
  return sum;
}

/** Removes the uploads of erased resources, and old ones that no resource ever used, which cannot be distinguished from them. */
async function eraseFiles(
  kb: KnowledgeBase,
  accountId: string,
  resourceIds: readonly string[],
): Promise<{ readonly files: number; readonly remains: readonly Remainder[] }> {
  const beforeIso = new Date(kb.nowMs() - UPLOADED_FOR_MS).toISOString();
  const remains: Remainder[] = [];
  let files = 0;
  for (const token of await kb.records.filesToErase({ accountId, resourceIds, beforeIso })) {
    if (await eraseFile(kb, token)) {
      files += 1;
      continue;
    }
    const file = await kb.records.file(token);
    if (file === undefined) continue;
    const reason = "another resource, a question or a download uses the file";
    remains.push({ kind: "upload", name: kb.addresses.urlOf(file), reason });
  }
  return { files, remains };
}

async function eraseFile(kb: KnowledgeBase, token: string): Promise<boolean> {
  for (let tries = 0; tries < FILE_TRIES; tries++) {
    if (await kb.files.remove(token, () => kb.records.eraseFile(token))) return true;
    await sleep(FILE_RETRY_MS);
  }
  return false;
}

function reportOf(
  { unknownTurns, ...sum }: Erased,
  files: number,
  remains: readonly Remainder[],
): ErasureReport {
  const unknown: Remainder = {
    kind: "thread",
    name: `${unknownTurns} answers in threads`,
    reason: "an older release stored them without the documents that they were made from",
  };
  return { ...sum, files, remains: unknownTurns > 0 ? [...remains, unknown] : remains };
}
