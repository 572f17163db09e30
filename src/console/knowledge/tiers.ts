import type { Strategy, Tier } from "../../wire/primitives.ts";

/** Words of each retrieval preference. */
export const TIER_WORDS: Readonly<Record<Tier, { readonly label: string; readonly hint: string }>> = {
  fastest: { label: "Fastest", hint: "Finds by words. Lowest latency, for quick responses." },
  moderate: { label: "Balanced", hint: "Finds by words and by meaning. A balance of speed and accuracy." },
  high_accuracy: {
    label: "High accuracy",
    hint: "Also compares the best results sentence by sentence. For complex or critical questions.",
  },
};

/** The retrieval preferences, from the fastest to the most accurate. */
export const TIERS: readonly Tier[] = ["fastest", "moderate", "high_accuracy"];

/** Words of each chunking type, with the advice of the specification. */
export const STRATEGIES: readonly {
  readonly value: Strategy;
  readonly label: string;
  readonly hint: string;
}[] = [
  {
    value: "recursive",
    label: "Recursive",
    hint: "Splits by sections, paragraphs and sentences. Recommended for structured documents such as PDFs, manuals and reports.",
  },
  {
    value: "semantic",
    label: "Semantic",
    hint: "Splits by meaning. Best for unstructured or narrative content.",
  },
  {
    value: "agentic",
    label: "Agentic",
    hint: "A language model decides where the text splits, as it would reason over it. Slower.",
  },
];
