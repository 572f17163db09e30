/** A text as one line: runs of white space become single blanks, none at the ends. Pure. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
