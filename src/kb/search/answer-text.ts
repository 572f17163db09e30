/** The `text` of a search answer: the contents in result order, joined by a blank line; empty without results. */
export function answerText(contents: readonly string[]): string {
  return contents.join("\n\n");
}
