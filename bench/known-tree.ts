import { mkdirSync } from "node:fs";
import { CONCURRENCY_EMBEDDED, SYNC_CONSTANTS, type SyncConfig } from "../src/config/schema/sync.ts";
import { ConfigFile } from "../src/config/schema.ts";
import { openLedger, type Ledger } from "../src/sync/ledger/ledger.ts";
import type { Observed } from "../src/sync/ledger/files/observed.ts";
import { rulesKeyOf } from "../src/sync/daemon/pass/rules-key.ts";
import type { ScanEntry } from "../src/sync/plan/model.ts";
import { openRules, type WatchedSource } from "../src/sync/scan/rules/rules.ts";
import { scanSource } from "../src/sync/scan/scan.ts";
import { OWNER } from "./plain-service.ts";

/** Rows written in one transaction. */
const BATCH_ROWS = 1000;

/** The source of a folder with the defaults of the configuration, and how it is synced. */
export function configOf(root: string): { readonly source: WatchedSource; readonly sync: SyncConfig } {
  const { sync, sources } = ConfigFile.parse({ sources: [{ path: root }] });
  const [source] = sources;
  if (source === undefined) throw new Error("no source");
  return {
    source: { ...source, absolutePath: root, ownerId: OWNER },
    // The audit would find that the plain service knows none of the resources that were never sent.
    sync: { ...SYNC_CONSTANTS, ...sync, concurrency: CONCURRENCY_EMBEDDED, settleMs: 0, auditHours: 0 },
  };
}

/** A ledger that says of every file in the folder that the service has it: a first sync that costs no requests. */
export async function writeKnownLedger(root: string, stateDir: string, identity: string): Promise<void> {
  const { source } = configOf(root);
  const rules = openRules(source);
  const scan = await scanSource(root, rules);
  if (scan.root === undefined) throw new Error(`no folder ${root}`);
  mkdirSync(stateDir, { recursive: true });
  const ledger = openLedger(stateDir, identity);
  const { id } = ledger.sources.open(root, OWNER, source.collection);
  await writeKnownRows(ledger, id, scan.entries, rulesKeyOf(rules));
  const identityOfRoot = scan.root;
  await ledger.write(() => {
    ledger.sources.setRoot(id, identityOfRoot);
    ledger.sources.setCollectionId(source.collection, "c".repeat(24));
  });
  ledger.close();
}

/** Writes a row in agreement for each entry. */
export async function writeKnownRows(
  ledger: Ledger,
  source: number,
  entries: readonly ScanEntry[],
  rulesKey: number,
): Promise<void> {
  for (let at = 0; at < entries.length; at += BATCH_ROWS) {
    await ledger.write(() => {
      for (const [offset, entry] of entries.slice(at, at + BATCH_ROWS).entries()) {
        const docId = (at + offset + 1).toString(16).padStart(24, "0");
        ledger.files.insert(source, docId, "agreed", observedOf(entry, rulesKey));
      }
    });
  }
}

function observedOf(entry: ScanEntry, rulesKey: number): Observed {
  return {
    entry,
    rulesKey,
    hash: "0".repeat(64),
    digest: "0".repeat(22),
    title: entry.path,
    label: "0".repeat(22),
    extractorVersion: 1,
    shape: {
      kind: "content",
      tier: "fastest",
      ownerId: OWNER,
      settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    },
    fileUrl: undefined,
  };
}
