import { cellsOf } from "./wrap.ts";

/** Text that is wrapped while it arrives. */
export interface StreamedProse {
  /** Takes the next piece, of any length. Writes all of it but the word that it may break in. */
  push(piece: string): void;
  /** Writes what is left. */
  end(): void;
}

/** A list's mark, a quotation's or a heading's: what follows is indented below its text. */
const MARK = /^(?:[-*+•>]|#{1,6}|\d{1,3}[.)])$/;
/** Rows of a table and commands of a shell mean something else when they are broken. */
const UNBROKEN = /^(?:\||\$$|kbsync$)/;
const FENCE = /^(?:```|~~~)/;
/** Indentation of a code block in Markdown. */
const CODE_INDENT = 4;

/**
 * Wraps Markdown at white space as it arrives, so that each line takes at most `columns()` terminal cells. Leaves code blocks, tables,
 * commands, code between backticks and long words such as links as they are. `write` receives what can be shown, in order.
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
