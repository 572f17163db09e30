/** Puts a text on one line: collapses white space to single spaces and trims the ends. Pure. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
