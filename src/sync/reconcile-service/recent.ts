import type { ActionContext } from "../actions/context.ts";
import { normalizedAddress } from "../plan/address.ts";
import { pathKey, type AcknowledgedFile } from "../ledger/drift/drift.ts";
import { textKey } from "../plan/audit.ts";
import type { ListedResource } from "../plan/model.ts";
import { CLOCK_SLACK_MS } from "../plan/settlement.ts";

/** The actions after an entry of the activity log, or after a time. */
interface Recent {
  row(row: AcknowledgedFile): boolean;
  doc(docId: string): boolean;
}

/** Reads what was done after the activity `entry`, or after `atMs`. */
export function openRecent({ ledger }: ActionContext, entry: number, atMs: number): Recent {
  ledger.flush();
  const { docIds, pathKeys } = ledger.drift.doneSince(entry, atMs, Date.now());
  const docs = new Set(docIds);
  const paths = new Set(pathKeys);
  return {
    row: (row) => docs.has(row.docId) || paths.has(pathKey(row.source, row.path)),
    doc: (docId) => docs.has(docId),
  };
}

/**
 * Returns a test for whether a create that is in flight, or was sent again, may have made a resource. Settling it will
 * show. It has made none that is older than its intent; an upload's address is that of its file whenever it was made.
 */
export function inFlightTest({ ledger }: ActionContext): (resource: ListedResource) => boolean {
  ledger.flush();
  const open = ledger.intents.allOpen();
  const addresses = new Set(open.flatMap(({ observed }) => normalizedAddress(observed.fileUrl) ?? []));
  const nowOffsetMs = ledger.intents.clockOffset() ?? 0;
  /** By what each would make: since when, by the service's clock. */
  const sinceMs = new Map<string, number>();
  for (const { observed, atMs, clockOffsetMs } of open) {
    const key = textKey(observed.label, observed.fileUrl, observed.digest);
    const ms = atMs + Math.min(clockOffsetMs ?? nowOffsetMs, nowOffsetMs) - CLOCK_SLACK_MS;
    sinceMs.set(key, Math.min(ms, sinceMs.get(key) ?? Infinity));
  }
  return ({ url, label, digest, createdMs = Infinity }) => {
    const ms = sinceMs.get(textKey(label, url, digest));
    return addresses.has(normalizedAddress(url) ?? "") || (ms !== undefined && createdMs >= ms);
  };
}
