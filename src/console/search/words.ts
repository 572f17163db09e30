/** Words that occur in every text and explain nothing. */
const COMMON = new Set(
  "a an and are as at be by can do does for from how i in is it of on or that the this to was what when where which who why will with".split(
    " ",
  ),
);
/** Shorter words are compared whole, because their beginnings are the beginnings of too many others. */
const STEM_CHARS = 4;

/** A piece of a text, and whether it is a word of the question. */
export interface MarkedPiece {
  readonly text: string;
  readonly isMatch: boolean;
}

/** Returns the words of a question that mean something, in small letters, each once. */
export function questionWords(question: string): readonly string[] {
  const words = question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const wanted = words.filter((word) => !COMMON.has(word));
  return [...new Set(wanted.length === 0 ? words : wanted)];
}

/** Cuts a text into words of the question, also in another form (tide, tides), and the rest. */
export function markWords(text: string, question: string): readonly MarkedPiece[] {
  const words = questionWords(question);
  const pieces: MarkedPiece[] = [];
  let end = 0;
  for (const found of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    const word = found[0].toLowerCase();
    if (!words.some((each) => isForm(each, word))) continue;
    if (found.index > end) pieces.push({ text: text.slice(end, found.index), isMatch: false });
    end = found.index + found[0].length;
    pieces.push({ text: found[0], isMatch: true });
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isMatch: false });
  return pieces;
}

/** Whether two words are forms of one: equal, or alike but for an ending. */
function isForm(a: string, b: string): boolean {
  if (a === b) return true;
  const length = Math.min(a.length, b.length);
  if (length < STEM_CHARS || Math.abs(a.length - b.length) > 3) return false;
  let same = 0;
  while (same < length && a[same] === b[same]) same += 1;
  return same >= Math.max(STEM_CHARS, length - 1);
}
