import type { PlannedAction } from "../../sync/operator/preview.ts";
import { counted, thousands } from "./progress.ts";

/** Characters of a token of English prose, as vendors of models state it; code and other scripts have fewer. */
const TOKEN_CHARS = 4;

/** The work that a pass would send. */
export interface Estimate {
  readonly documents: number;
  /** Bytes of their files. */
  readonly bytes: number;
  /** Tokens of the texts that are known, at four characters each. */
  readonly tokens: number;
  /** Documents whose text is not known: pictures, and files that could not be read here, or not in time. */
  readonly unknown: number;
  /** How many of these are pictures or scans. */
  readonly pictures: number;
  /**
   * Price of embedding these tokens; absent without a price in the configuration. A tier that searches by words alone embeds
   * nothing.
   */
  readonly cost?: number;
}

/** Sums up a plan. `price` is that of a million tokens; `embeds` reports whether the texts of a source are embedded. */
export function estimateOf(
  planned: readonly PlannedAction[],
  price: number | undefined,
  embeds: (source: string) => boolean,
): Estimate {
  const sum = { documents: 0, bytes: 0, tokens: 0, unknown: 0, pictures: 0 };
  let embedded = 0;
  for (const { source, sends } of planned) {
    if (sends === undefined) continue;
    const tokens = Math.ceil((sends.chars ?? 0) / TOKEN_CHARS);
    sum.documents += 1;
    sum.bytes += sends.bytes;
    sum.tokens += tokens;
    if (sends.chars === undefined) sum.unknown += 1;
    if (sends.isPicture === true) sum.pictures += 1;
    if (embeds(source)) embedded += tokens;
  }
  return price === undefined ? sum : { ...sum, cost: (embedded / 1_000_000) * price };
}

/** One line, for people; empty if nothing would be sent. */
export function estimateLine({ documents, bytes, tokens, unknown, pictures, cost }: Estimate): string {
  if (documents === 0) return "";
  const ofPictures = pictures === 0 ? "" : ` (${counted(pictures, "picture or scan", "pictures or scans")})`;
  const unread =
    unknown === 0 ? "" : `, not counting ${counted(unknown, "file")} whose text is not known${ofPictures}`;
  const price = cost === undefined ? "" : `; embedding them costs about ${cost.toFixed(cost < 1 ? 4 : 2)}`;
  return `${counted(documents, "document")}, ${thousands(bytes)} bytes, about ${thousands(tokens)} tokens (at four characters each)${unread}${price}\n`;
}
