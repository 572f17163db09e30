/**
 * Escapes control characters, which a terminal would execute: they move the cursor, clear the screen or write to the
 * clipboard. Covers C0 and C1 (ECMA-48), and bidirectional controls that disguise names (https://trojansource.codes), but
 * not line feeds and tabs. The form `\uXXXX` means the same character in a JSON string, so JSON may pass through. Pure.
 */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(OBEYED, escaped);
}

/** The same on one line: line feeds and tabs are shown too. Pure. */
export function visibleLine(text: string): string {
  return text.replaceAll(/[\n\r\t]/g, (char) => NAMED.get(char) ?? char).replaceAll(OBEYED, escaped);
}

// oxlint-disable-next-line no-control-regex -- matches what must not reach the terminal
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

const NAMED: ReadonlyMap<string, string> = new Map([
  ["\n", String.raw`\n`],
  ["\r", String.raw`\r`],
  ["\t", String.raw`\t`],
]);

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
