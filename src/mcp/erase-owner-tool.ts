import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { pagesOf } from "../lib/pages.ts";
import { OWNER_CHARS_MAX } from "../wire/constants.ts";
import { OWNERS_MAX } from "../wire/owners.ts";
import type { Reached } from "./caller.ts";
import { type Report, ReportCursor, ReportFields, reportAt, reportOf, reportOutput } from "./erase-report.ts";
import type { KnownFiles } from "./known-files.ts";
import { daemonOf, noDaemon } from "./plan-tool.ts";
import { listSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Arguments of the tool `erase_owner`. */
export const EraseOwnerInput = z.object({
  owner: z.string().min(1).max(OWNER_CHARS_MAX).describe("The owner_id, as list_sources returns it."),
  confirm: z
    .int()
    .min(0)
    .describe(
      "The number of documents that the owner has, the sum of those of list_sources. Ask the person who wants them erased.",
    ),
  cursor: ReportCursor,
});
export type EraseOwnerInput = z.infer<typeof EraseOwnerInput>;

/** Result of the tool `erase_owner`. */
export const EraseOwnerOutput = z.object({ owner: z.string(), ...ReportFields });
export type EraseOwnerOutput = z.infer<typeof EraseOwnerOutput>;

/**
 * Erases all documents of an owner of the caller's account, and the owner's name. The daemon erases for the key that its folders are
 * synced with, the service for other keys. Throws `erase_unconfirmed`, `still_synced`, and what daemon and service refuse.
 */
export async function eraseOwner(
  reached: Reached,
  files: KnownFiles,
  { owner, confirm, cursor }: EraseOwnerInput,
  signal: AbortSignal,
): Promise<ToolOutput<EraseOwnerOutput>> {
  const output = (report: Report): ToolOutput<EraseOwnerOutput> =>
    reportOutput({ owner }, "erase_owner", report);
  if (cursor !== undefined) return output(reportAt(cursor));
  const sources = await sourcesOf(reached, files, owner, signal);
  const documents = sources.reduce((sum, source) => sum + (source.documents ?? 0), 0);
  if (confirm !== documents) {
    throw new KbsyncError("confirm is not the number of the owner's documents", {
      code: "erase_unconfirmed",
      hint: "Nothing was erased. list_sources has the number; ask the person who wants the documents erased.",
    });
  }
  await refuseSynced(reached, files, { owner, sources }, signal);
  return output(reportOf(await eraseAt(reached, owner, signal)));
}

/**
 * Returns the owner's parts of the collections. Reads all owners: one that is not found counts as one without documents. Throws
 * `service_refused` for a list that does not end.
 */
async function sourcesOf(
  reached: Reached,
  files: KnownFiles,
  owner: string,
  signal: AbortSignal,
): Promise<readonly McpSource[]> {
  const found: McpSource[] = [];
  const pages = pagesOf({
    what: "list of owners",
    read: async (cursor) => listSources(reached, files, { limit: OWNERS_MAX, cursor }, signal),
    next: ({ nextCursor }) => nextCursor,
    hint: "Nothing was erased. The list returned the same cursor twice.",
  });
  for await (const { sources } of pages) found.push(...sources.filter((each) => each.owner_id === owner));
  return found;
}

/** Throws for documents of files that would be sent again: of a folder of this machine, or of another one's. */
async function refuseSynced(
  { service, ownsLedger }: Reached,
  files: KnownFiles,
  { owner, sources }: { readonly owner: string; readonly sources: readonly McpSource[] },
  signal: AbortSignal,
): Promise<void> {
  const synced = sources.find(({ folder }) => folder !== null);
  if (synced !== undefined)
    throw stillSynced(
      `the documents of ${owner} are those of ${synced.folder ?? ""}, which is synced`,
      "Remove the folder from the configuration first.",
    );
  if (ownsLedger && files.formerOwners.includes(owner)) return;
  for (const { collection_id: collectionId, owner_id: ownerId } of sources) {
    const found = await service.facets({ collectionId, ownerId, fields: ["path"] }, signal);
    if (found === undefined) throw unsupported();
    if (found.facets.some(({ distinct }) => distinct > 0))
      throw stillSynced(
        `documents of ${owner} are files of no folder that this machine syncs`,
        "Another machine may have the files, and would send them again. Remove its folder there first, or delete the documents.",
      );
  }
}

async function eraseAt(
  reached: Reached,
  owner: string,
  signal: AbortSignal,
): Promise<Parameters<typeof reportOf>[0]> {
  if (reached.ownsLedger) {
    const done = await daemonOf(reached).erase({ owner }, signal);
    if (done === undefined) throw noDaemon("`kbsync erase --owner` erases without one.");
    return done;
  }
  const report = await reached.service.eraseOwner(owner, signal);
  if (report === undefined) throw unsupported();
  return { service: report };
}

function stillSynced(message: string, hint: string): KbsyncError {
  return new KbsyncError(message, { code: "still_synced", hint: `Nothing was erased. ${hint}` });
}

function unsupported(): KbsyncError {
  return new KbsyncError("the service cannot erase owners", { code: "erase_unsupported" });
}
