import { existsSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { Config } from "../../config/load.ts";
import { sourceAround } from "../../config/folders.ts";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { isMarkdownAtService } from "../../lib/markup/text-formats.ts";
import { type HeadedFile, headingsOf } from "../../lib/markup/starter-questions.ts";
import type { ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import { openSearchClient, searchScopes } from "../../sync/operator/search.ts";
import type { ServiceAddress } from "../../sync/remote/transport.ts";
import { makeStarter } from "../evaluation/starter.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { Context } from "../output/context.ts";
import { counted } from "../output/progress.ts";

/** Maximum number of headings to choose from; further documents are left out. */
const HEADINGS_MAX = 100_000;

/** The sources of a starter: the ledger and the service that it was synced to. */
export interface Synced {
  readonly config: Config;
  readonly lookup: ResourceLookup;
  readonly service: ServiceAddress;
}

/** `kbsync eval --init FILE`. Throws `usage` for a file that exists or would be synced, and if there are no headings. */
export async function writeStarter(context: Context, file: string, synced: Synced): Promise<void> {
  checkFile(file, synced.lookup);
  const starter = makeStarter(await headedFiles(file, synced, context.signal));
  if (starter.questions === 0) {
    throw new KbsyncError("no synced document has a heading that is its own", {
      code: "usage",
      hint: "Write the questions yourself; `kbsync eval --help` has an example.",
    });
  }
  writeNew(file, starter.text);
  context.stdout.write(
    `${file}: ${counted(starter.questions, "question")}, from ${counted(starter.headings, "heading")} that one file alone has\n` +
      "Edit the questions, then run `kbsync eval`.\n",
  );
}

function checkFile(file: string, { sources }: ResourceLookup): void {
  const around = sourceAround(
    file,
    sources.map(({ path }) => path),
  );
  if (around !== undefined) {
    throw new KbsyncError(`${file} lies in the synced folder ${around}: searches would find the questions`, {
      code: "usage",
      subject: file,
      hint: "Name a file outside, or in a folder whose name begins with a dot.",
    });
  }
  if (!existsSync(file)) return;
  throw new KbsyncError(`${file} exists already`, {
    code: "usage",
    subject: file,
    hint: "Name another file, or run `kbsync eval` on this one.",
  });
}

/** The synced documents with headings, as the service lists them. */
async function headedFiles(
  file: string,
  { config, lookup, service }: Synced,
  signal: AbortSignal,
): Promise<HeadedFile[]> {
  const files = new Map<string, HeadedFile>();
  let headings = 0;
  const add = ({ _id: docId, content }: ResourceRecord): void => {
    const found = lookup.fileOf(docId);
    if (found === undefined || files.has(docId) || headings >= HEADINGS_MAX) return;
    if (typeof content !== "string" || !isMarkdownAtService(found.path)) return;
    const own = [...headingsOf(content)];
    headings += own.length;
    const source = lookup.sources.length > 1 ? relative(dirname(file), found.source) : undefined;
    files.set(docId, { path: found.path, source, headings: own });
  };
  const client = openSearchClient(service, config.sync.requestTimeoutMs);
  try {
    for (const scope of searchScopes(lookup.sources)) await client.list(scope, add, signal);
  } finally {
    await client.close();
  }
  return [...files.values()];
}

function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: "wx" });
  } catch (error) {
    throw new KbsyncError(`cannot write ${file}: ${messageOf(error)}`, {
      code: "usage",
      subject: file,
      cause: error,
    });
  }
}
