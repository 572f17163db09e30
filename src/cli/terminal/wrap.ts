/** Characters of two cells: East Asian scripts, full-width forms and emoji (approximates Unicode's UAX #11). */
const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]$/u;
/** Characters without a cell: marks and format characters join the character before them. */
const JOINED = /^[\p{M}\p{Cf}]$/u;

/** Returns the number of terminal cells that a line takes. Pure. */
export function cellsOf(line: string): number {
  let cells = 0;
  for (const character of line) cells += cellsOfCharacter(character);
  return cells;
}

/**
 * Breaks a text into lines of at most `cells` terminal cells, at white space where possible. Line feeds end lines, and other
 * white space within a line counts as one blank. Pure.
 */
export function wrapped(text: string, cells: number): string[] {
  return text.split("\n").flatMap((line) => wrappedLine(line, cells));
}

function wrappedLine(text: string, cells: number): string[] {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    for (const part of cut(word, cells)) {
      const wanted = cellsOf(part);
      const fits = used + 1 + wanted <= cells;
      if (line !== "" && fits) {
        line += ` ${part}`;
        used += 1 + wanted;
        continue;
      }
      if (line !== "") lines.push(line);
      line = part;
      used = wanted;
    }
  }
  return [...lines, line];
}

/** Cuts a long word into pieces that fit on a line. */
function cut(word: string, cells: number): string[] {
  if (cellsOf(word) <= cells) return [word];
  const parts: string[] = [];
  let part = "";
  let used = 0;
  for (const character of word) {
    const wanted = cellsOfCharacter(character);
    if (used + wanted > cells && part !== "") {
      parts.push(part);
      part = "";
      used = 0;
    }
    part += character;
    used += wanted;
  }
  return [...parts, part];
}

function cellsOfCharacter(character: string): number {
  if (character <= "~") return 1;
  if (JOINED.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
