/** Longest pause between cues of one paragraph. */
const PAUSE_MS = 4000;
/** A paragraph ends with the first sentence beyond this length, and anywhere beyond twice this length. */
const PARAGRAPH_CHARS = 600;

const TIMING =
  /^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s+-->\s+(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})/;
/** A WebVTT voice span, `<v.loud Anna>`. */
const VOICE = /<v(?:\.[^\s<>]{1,100})?[ \t]+([^<>]{1,200})>/;
/** Tags of WebVTT and SubRip, and SubRip positions, `{\an8}`. */
const MARKS = /<[^<>]{1,200}>|\{\\[^{}]{1,50}\}/g;

interface Paragraph {
  readonly startMs: number;
  readonly speaker: string;
  endMs: number;
  text: string;
}

/**
 * Extracts the text of subtitles (WebVTT, SubRip) as paragraphs, each below a line with its start time (`[00:01:30]`) and
 * with its speaker if the file names one. Omits styles, notes, cue numbers, and lines that a cue repeats from the previous
 * one. Undefined for a text without cues.
 */
export function subtitleText(text: string): string | undefined {
  const paragraphs: Paragraph[] = [];
  let cues = 0;
  let lastLine = { speaker: "", words: "" };
  for (const block of text.replaceAll(/\r\n?/g, "\n").split(/\n[ \t]*\n/)) {
    const lines = block.split("\n").filter((line) => line.trim() !== "");
    // An identifier (WebVTT) or number (SubRip) may precede the timing, and a header the first cue without a blank line.
    const at = lines.findIndex((line) => TIMING.test(line));
    if (at === -1 || /^(?:NOTE|STYLE|REGION)\b/.test(lines[0] ?? "")) continue;
    const [startMs, endMs] = timesOf(lines[at] ?? "");
    cues += 1;
    let speaker = "";
    for (const line of lines.slice(at + 1)) {
      for (const [turn, piece] of line.split(VOICE).entries()) {
        // Odd pieces are the pattern's captures.
        if (turn % 2 === 1) {
          speaker = cleanText(piece);
          continue;
        }
        const words = cleanText(piece);
        if (words === "" || (words === lastLine.words && speaker === lastLine.speaker)) continue;
        lastLine = { speaker, words };
        append(paragraphs, { startMs, endMs, speaker, text: words });
      }
    }
  }
  if (cues === 0) return undefined;
  return paragraphs
    .map(
      ({ startMs, speaker, text: words }) =>
        `[${clock(startMs)}]\n${speaker === "" ? "" : `${speaker}: `}${words}`,
    )
    .join("\n\n");
}

function append(paragraphs: Paragraph[], cue: Paragraph): void {
  const last = paragraphs.at(-1);
  const isLong =
    last !== undefined &&
    last.text.length > PARAGRAPH_CHARS &&
    (/[.!?…。！？]["'”’»)]*$/.test(last.text.slice(-10)) || last.text.length > 2 * PARAGRAPH_CHARS);
  if (last?.speaker !== cue.speaker || isLong || cue.startMs - last.endMs > PAUSE_MS) {
    paragraphs.push(cue);
    return;
  }
  // A dash marks another speaker.
  last.text += (/^[-–—]\s?\S/.test(cue.text) ? "\n" : " ") + cue.text;
  last.endMs = cue.endMs;
}

function cleanText(marked: string): string {
  return marked
    .replaceAll(MARKS, "")
    .replaceAll(/&(amp|lt|gt|nbsp|lrm|rlm);/g, (_, name: string) => ENTITIES[name] ?? "")
    .replaceAll(/\s+/g, " ")
    .trim();
}
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", nbsp: " " };

function timesOf(line: string): readonly [startMs: number, endMs: number] {
  const numbers = (TIMING.exec(line) ?? []).slice(1).map((part) => Number(part ?? 0));
  const [h = 0, m = 0, s = 0, ms = 0, endH = 0, endM = 0, endS = 0, endMs = 0] = numbers;
  return [((h * 60 + m) * 60 + s) * 1000 + ms, ((endH * 60 + endM) * 60 + endS) * 1000 + endMs];
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}
