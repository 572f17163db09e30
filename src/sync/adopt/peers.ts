import type { NumberSet } from "../../lib/number-set.ts";
import type { ActionContext, PeerSource } from "../actions/context.ts";
import { isWithin, withinTest } from "../plan/unsearched.ts";
import { matchFiles, uploadGroups, type AdoptableResource, type Match } from "../plan/adoption.ts";
import type { RelativePath } from "../plan/model.ts";
import { hashUploads } from "../reconcile-service/uploads.ts";
import { openRules } from "../rules/rules.ts";
import { scanSource } from "../scan/scan.ts";
import { readCandidates, type AdoptingSource, type AdoptionCandidate } from "./candidates.ts";

type PeerMatch = Match<AdoptionCandidate, AdoptableResource>;

/** Returns the other running sources of the same owner and collection. */
export function peersOf(
  { peers }: Pick<ActionContext, "peers">,
  { id, rules }: Pick<AdoptingSource, "id" | "rules">,
): readonly PeerSource[] {
  const { collection, ownerId } = rules.source;
  return [...peers].filter(
    ({ source }) =>
      source.id !== id &&
      source.rules.source.collection === collection &&
      source.rules.source.ownerId === ownerId,
  );
}

/**
 * Returns a test of matches by title and description alone: whether the resource may belong to another source instead.
 * That source has yet to adopt, and a file of it has exactly what the resource has, or cannot be read. `sound`: rows
 * whose resource matches the row.
 */
export async function openPeerTest(
  context: ActionContext,
  source: AdoptingSource,
  matches: readonly PeerMatch[],
  { sound, signal }: { readonly sound: NumberSet; readonly signal: AbortSignal },
): Promise<(match: PeerMatch) => boolean> {
  const taken = new Set<string>();
  const unread: RelativePath[] = [];
  for (const peer of matches.length === 0 ? [] : peersOf(context, source)) {
    const left = matches.map(({ resource }) => resource).filter(({ docId }) => !taken.has(docId));
    const searched = await searchPeer(context, peer.source, left, { sound, signal });
    for (const { docId } of searched.taken) taken.add(docId);
    unread.push(...searched.unread);
  }
  const isUnread = withinTest(unread);
  return ({ file, resource, exact }) => !exact && (taken.has(resource.docId) || isUnread(file.path));
}

/** Returns which of the resources a source will adopt as equal, and the paths that it could not read. */
async function searchPeer(
  context: ActionContext,
  peer: AdoptingSource,
  resources: readonly AdoptableResource[],
  { sound, signal }: { readonly sound: NumberSet; readonly signal: AbortSignal },
): Promise<{ readonly taken: readonly AdoptableResource[]; readonly unread: readonly RelativePath[] }> {
  const { drift, files } = context.ledger;
  const { parts } = drift.unsearched(peer.id);
  if (parts.length === 0 && drift.isAdopted(peer.id)) return { taken: [], unread: [] };
  // A row of a new ledger gives up its resource for an older one; any other keeps one that matches it.
  const isNew = parts.length === 0 && !drift.isDistrusted(peer.id);
  const mayTake = (path: RelativePath): boolean => {
    if (parts.length > 0 && !isWithin(path, parts)) return false;
    const row = isNew ? undefined : files.living(peer.id, path);
    return row === undefined || !sound.has(row.id);
  };
  // The source's own rules belong to its own checks, which may be in progress.
  const rules = openRules(peer.rules.source);
  const scan = await scanSource(peer.root, rules, { signal, onSlice: context.moved });
  if (scan.root === undefined) return { taken: [], unread: [""] };
  const unread = scan.unreadable.map(({ path }) => path);
  const topics = new Set(resources.map(({ topic }) => topic));
  const candidates: AdoptionCandidate[] = [];
  const entries = scan.entries.filter(({ path }) => mayTake(path));
  for await (const each of readCandidates(context, { ...peer, rules }, entries, signal)) {
    if (!("observed" in each)) {
      if (each.topic === undefined) unread.push(each.path);
    } else if (topics.has(each.topic)) candidates.push(each);
  }
  const groups = uploadGroups(candidates, resources, (url) => context.remote.hostsFile(url));
  const hashes = await hashUploads(context, groups, signal);
  const { matches } = matchFiles(candidates, resources, hashes);
  return { taken: matches.filter(({ exact }) => exact).map(({ resource }) => resource), unread };
}
