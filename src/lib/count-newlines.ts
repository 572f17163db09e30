/** Counts the line feeds of `text` from `start` up to, not including, `end`. */
export function countNewlines(text: string, start: number, end: number): number {
  // A search in the whole text would run beyond `end`, to the end of a text without line feeds.
  const part = text.slice(start, end);
  let count = 0;
  for (let at = part.indexOf("\n"); at !== -1; at = part.indexOf("\n", at + 1)) count += 1;
  return count;
}
