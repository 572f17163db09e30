import { basename, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ActionContext } from "../actions/context.ts";
import { metadataOf, observe, topicOf } from "../actions/observe.ts";
import { kindOfName } from "../../formats/kinds.ts";
import type { Observed } from "../ledger/files/observed.ts";
import { uploadedHash } from "../plan/decide.ts";
import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { isBlank } from "../plan/reconcile.ts";
import { readDocument } from "../read/read.ts";
import { composeRecipe } from "../read/recipe.ts";
import type { SizedFile } from "../reconcile-service/uploads.ts";
import type { Rules } from "../rules/rules.ts";

/** The facts of a source that adoption needs. */
export interface AdoptingSource {
  readonly id: number;
  readonly root: string;
  readonly rules: Rules;
  readonly rulesKey: (path: RelativePath) => number;
}

/** A file that may have a resource at the service. */
export interface AdoptionCandidate extends SizedFile {
  readonly observed: Observed;
}

/**
 * A file without content to compare: unreadable, empty or no document now, such as a text that became binary. The last
 * two have the topic of the description that the file has without a text.
 */
export interface UnreadFile {
  readonly path: RelativePath;
  readonly topic?: string;
  /** Its resource may have another description, from the text that the file had. */
  readonly mayHaveOtherTopic?: boolean;
  /** That description contains the path, so no other file has it. */
  readonly namesPath?: boolean;
}

/** Files read between two turns of the loop. */
const READ_AT_ONCE = 32;

/** Reads files to match them with resources. */
export async function* readCandidates(
  { ledger, capabilities, moved }: ActionContext,
  { id, root, rules, rulesKey }: AdoptingSource,
  entries: readonly ScanEntry[],
  signal: AbortSignal,
): AsyncGenerator<AdoptionCandidate | UnreadFile> {
  for (const [index, entry] of entries.entries()) {
    signal.throwIfAborted();
    const readAtMs = Date.now();
    const row = ledger.files.get(ledger.files.living(id, entry.path)?.id ?? 0);
    const read = await readDocument(join(root, entry.path), entry, rules, {
      signal,
      uploadsMails: capabilities.readsMails(),
      uploadedHash: uploadedHash(row),
    });
    moved();
    // A file that cannot be read, or is changing, is matched another time.
    if (read.kind === "unreadable" || read.kind === "torn") yield { path: entry.path };
    if (read.kind === "refused" || read.kind === "skipped")
      yield unreadAt(entry.path, composeRecipe(entry.path, "content", {}, rules).description, rules);
    if (read.kind === "document") {
      const { description } = read.document.recipe;
      if (isBlank(read.document.entry, row)) yield unreadAt(entry.path, description, rules);
      else {
        const sent = capabilities.takesMetadata() ? metadataOf(read.document, rules) : undefined;
        yield candidateOf(observe(read.document, rulesKey(entry.path), readAtMs, sent), topicOf(description));
      }
    }
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
}

/** Describes a file that is no document now. Its `description` is what it has without a text. */
function unreadAt(path: RelativePath, description: string, rules: Rules): UnreadFile {
  const template = rules.descriptionRule(path)?.description;
  const namesPath = template === undefined || template.includes("{path}");
  const named = kindOfName(basename(path));
  const mayHaveOtherTopic = named.kind === "content" && named.format === "markdown";
  return { path, topic: topicOf(description), mayHaveOtherTopic, namesPath };
}

function candidateOf(observed: Observed, topic: string): AdoptionCandidate {
  const { entry, shape, title, label, digest, hash, fileUrl: url } = observed;
  return {
    path: entry.path,
    hasOther: false,
    sizeBytes: entry.sizeBytes,
    kind: shape.kind,
    title,
    topic,
    label,
    digest,
    hash,
    url,
    observed,
  };
}
