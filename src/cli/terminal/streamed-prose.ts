import { cellsOf } from "./wrap.ts";

/** Text that is wrapped while it arrives. */
export interface StreamedProse {
  /** Takes the next piece, of any length. Writes all of it but the last word, which may continue. */
  push(piece: string): void;
  /** Writes the rest. */
  end(): void;
}

/** The mark of a list item, a quotation or a heading; further lines are indented to its text. */
const MARK = /^(?:[-*+•>]|#{1,6}|\d{1,3}[.)])$/;
/** Table rows and shell commands have another meaning if they are broken. */
const UNBROKEN = /^(?:\||\$$|kbsync$)/;
const FENCE = /^(?:```|~~~)/;
/** Indentation of a code block in Markdown. */
const CODE_INDENT = 4;

/**
 * Wraps Markdown at white space as it arrives, so that each line takes at most `columns()` terminal cells. Code blocks, tables,
 * commands, code between backticks and long words such as links stay unchanged. `write` receives the text in order, as soon as
 * it can be shown.
 */
export function openStreamedProse(write: (text: string) => void, columns: () => number): StreamedProse {
  let shown = "";
  let fence: string | undefined;
  let line = newLine();

  const put = (text: string): void => {
    shown += text;
    line.used += cellsOf(text);
  };
  const endWord = (): void => {
    const { word, gap } = line;
    if (word === "") return;
    if (line.isStart) startLine(word);
    const fits = line.used + gap.length + cellsOf(word) <= columns();
    if (fits || line.isUnbroken || line.used <= line.hanging) put(gap + word);
    else {
      shown += "\n";
      line.used = 0;
      put(" ".repeat(line.hanging) + word);
    }
    if (UNBROKEN.test(word)) line.isUnbroken = true;
    line = { ...line, word: "", gap: "", isStart: false };
  };
  /** Decides by its first word how a line is treated. */
  const startLine = (word: string): void => {
    const indent = line.gap.replaceAll("\t", " ".repeat(CODE_INDENT)).length;
    const [mark] = FENCE.exec(word) ?? [];
    line.isUnbroken = fence !== undefined || mark !== undefined;
    if (fence === undefined) fence = mark;
    else if (word.startsWith(fence)) fence = undefined;
    const hasMark = MARK.test(word);
    if (indent >= CODE_INDENT && !hasMark) line.isUnbroken = true;
    const hanging = indent + (hasMark ? word.length + 1 : 0);
    line.hanging = hanging * 2 > columns() ? 0 : hanging;
  };
  const take = (character: string): void => {
    if (character === "\n") {
      endWord();
      shown += "\n";
      line = newLine();
    } else if (line.isUnbroken && !line.isStart) {
      put(character);
    } else if ((character === " " || character === "\t") && !line.isCode) {
      endWord();
      if (line.isUnbroken && !line.isStart) put(character);
      else line.gap += character;
    } else {
      if (character === "`") line.isCode = !line.isCode;
      line.word += character;
    }
  };
  const flush = (): void => {
    if (shown !== "") write(shown);
    shown = "";
  };
  return {
    push: (piece) => {
      for (const character of piece) take(character);
      flush();
    },
    end: () => {
      endWord();
      flush();
    },
  };
}

/** A line of the source, of which `used` cells are written on the line of the terminal. */
function newLine() {
  return {
    used: 0,
    /** Cells before the text of a line that is continued. */
    hanging: 0,
    /** White space before the word that is being read. */
    gap: "",
    word: "",
    isStart: true,
    /** Within backticks. */
    isCode: false,
    isUnbroken: false,
  };
}
