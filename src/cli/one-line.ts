/**
 * A text as one line that a terminal shows and does not obey: a file's name may hold a line's end, or the beginning of a
 * command to the terminal (C0 and C1 control characters, https://www.ecma-international.org/publications-and-standards/standards/ecma-48/). Pure.
 */
export function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what must not reach the terminal
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (char) => NAMED.get(char) ?? escaped(char));
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ["\n", String.raw`\n`],
  ["\r", String.raw`\r`],
  ["\t", String.raw`\t`],
]);

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
