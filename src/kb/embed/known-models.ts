import { PACKAGED_MODEL } from "../../lib/package.ts";
import { LENGTH_FILE } from "./model-files.ts";
import { PROMPTS_FILE } from "./prompts.ts";

/** An embedding model that `kbsync models` offers. Each pools by the mean. */
export interface KnownModel {
  readonly name: string;
  /** Words for a person. */
  readonly languages: string;
  /** Where it comes from; undefined: kbsync's package has it. */
  readonly download?: ModelDownload;
}

export interface ModelDownload {
  /** Repository on the model hub. */
  readonly hubId: string;
  readonly sizeMb: number;
  /** Files that the repository lacks, as its card describes the model: the longest text it was trained with, and its prompts. */
  readonly card: Readonly<Record<string, object>>;
}

export const KNOWN_MODELS: readonly KnownModel[] = [
  { name: PACKAGED_MODEL, languages: "English" },
  {
    name: "paraphrase-multilingual-MiniLM-L12-v2",
    languages: "some 50 languages",
    download: {
      hubId: "Xenova/paraphrase-multilingual-MiniLM-L12-v2",
      sizeMb: 135,
      card: { [LENGTH_FILE]: { max_seq_length: 128 } },
    },
  },
  {
    name: "multilingual-e5-small",
    languages: "some 100 languages",
    download: {
      hubId: "Xenova/multilingual-e5-small",
      sizeMb: 135,
      card: {
        [LENGTH_FILE]: { max_seq_length: 512 },
        [PROMPTS_FILE]: { prompts: { query: "query: ", document: "passage: " } },
      },
    },
  },
];
