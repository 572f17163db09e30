/** Returns a filter of texts that contain each word of a query, whatever its case; undefined: the query has no words. Pure. */
export function wordFilter(query: string | undefined): ((text: string) => boolean) | undefined {
  const words = folded(query ?? "")
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return undefined;
  return (text) => {
    const whole = folded(text);
    return words.every((word) => whole.includes(word));
  };
}

/** Removes the differences of case and of how accents are encoded. */
function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
