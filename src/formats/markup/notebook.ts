/** Longest notebook without its images. Longer ones hold data, and parsing them takes too much memory. */
const JSON_CHARS_MAX = 8_000_000;
/** Longest part of an output that is read: the beginning of a log or table shows what it is. */
const OUTPUT_CHARS_MAX = 10_000;
/** Longer runs of letters and digits are encoded data. */
const RUN_CHARS_MAX = 500;

type Json = Readonly<Record<string, unknown>>;

/**
 * Converts a Jupyter notebook to Markdown: Markdown cells, code in fences with the notebook's language, and shortened text
 * outputs. Omits images and other encoded data. Undefined for a text that is no notebook.
 */
export function notebookMarkdown(text: string): string | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const json = withoutMedia(text);
  const notebook = json.length > JSON_CHARS_MAX ? undefined : parseObject(json);
  if (notebook === undefined || typeof notebook["nbformat"] !== "number") return undefined;
  const cells = cellsOf(notebook);
  if (cells === undefined) return undefined;
  const language = languageOf(objectOf(notebook["metadata"]));
  const parts = cells.flatMap((cell) => cellParts(cell, language));
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Returns the cells of a notebook, which format 3 stores in worksheets; undefined if it has no list of them. */
function cellsOf({ cells, worksheets }: Json): Json[] | undefined {
  if (Array.isArray(cells)) return listOf(cells);
  return Array.isArray(worksheets)
    ? listOf(worksheets).flatMap((sheet) => listOf(sheet["cells"]))
    : undefined;
}

function cellParts(cell: Json, notebookLanguage: string): string[] {
  const source = withoutRuns(textOf(cell["source"] ?? cell["input"])).trim();
  switch (cell["cell_type"]) {
    case "markdown":
      return [source];
    case "heading": {
      const level = Math.min(Math.max(Number(cell["level"]) || 1, 1), 6);
      return [source === "" ? "" : `${"#".repeat(level)} ${source}`];
    }
    case "code": {
      const language = typeof cell["language"] === "string" ? wordOf(cell["language"]) : notebookLanguage;
      const outputs = listOf(cell["outputs"])
        .map(outputText)
        .filter((output) => output !== "");
      return [
        fenced(source, language),
        ...(outputs.length === 0 ? [] : [`Output:\n\n${outputs.join("\n\n")}`]),
      ];
    }
    default:
      return [fenced(source, "")];
  }
}

/** Returns the text of an output; empty for an image. */
function outputText(output: Json): string {
  if (output["output_type"] === "error" || output["output_type"] === "pyerr")
    return fenced(bounded(`${textOf(output["ename"])}: ${textOf(output["evalue"])}`), "");
  const data = objectOf(output["data"]);
  const markdown = textOf(data["text/markdown"]);
  if (markdown.trim() !== "") return bounded(markdown);
  return fenced(bounded(textOf(data["text/plain"] ?? output["text"])), "");
}

function bounded(text: string): string {
  const clean = withoutRuns(withoutEscapes(text)).trimEnd();
  if (clean.length <= OUTPUT_CHARS_MAX) return clean;
  const left = clean.length - OUTPUT_CHARS_MAX;
  return `${clean.slice(0, OUTPUT_CHARS_MAX).toWellFormed()}\n(${left} more characters of this output are left out.)`;
}

/** Removes terminal colours and overwritten lines, such as those of progress bars. */
function withoutEscapes(text: string): string {
  // oxlint-disable-next-line no-control-regex -- matches terminal escapes
  const plain = text.replaceAll(/\u001b\[[0-9;?]{0,20}[A-Za-z]/g, "").replaceAll("\r\n", "\n");
  if (!plain.includes("\r")) return plain;
  const lines = plain.split("\n").map((line) => line.slice(line.lastIndexOf("\r") + 1));
  return lines.join("\n");
}

/** Removes base64 data, such as images embedded in Markdown (`data:image/png;base64,…`). */
function withoutRuns(text: string): string {
  return text.replaceAll(/[A-Za-z0-9+/]+={0,2}/g, (run) => (run.length > RUN_CHARS_MAX ? "…" : run));
}

/** Puts code in a fence longer than any inside it. */
function fenced(code: string, language: string): string {
  if (code.trim() === "") return "";
  let ticks = 2;
  for (const [run] of code.matchAll(/`{3,}/g)) ticks = Math.max(ticks, run.length);
  const fence = "`".repeat(ticks + 1);
  return `${fence}${language}\n${code}\n${fence}`;
}

function languageOf(metadata: Json): string {
  const info = objectOf(metadata["language_info"])["name"];
  const kernel = objectOf(metadata["kernelspec"])["language"];
  return wordOf(typeof info === "string" ? info : typeof kernel === "string" ? kernel : "python");
}

/** Reduces a language to the characters that a fence can name. */
function wordOf(language: string): string {
  return language
    .toLowerCase()
    .replaceAll(/[^\w+#.-]/g, "")
    .slice(0, 40);
}

const MEDIA_KEY =
  /"(?:image|audio|video|application|text\/html)[\w.+/-]{0,80}"[ \t\r\n]{0,40}:[ \t\r\n]{0,40}(?=["[])/g;

/**
 * Empties images and pages among the outputs before parsing, as they make up most of a notebook. The value of such a key is
 * a string or a list of strings; strings escape quotes, so nothing inside one matches a key.
 */
function withoutMedia(json: string): string {
  let written = "";
  let at = 0;
  for (const match of json.matchAll(MEDIA_KEY)) {
    const begin = match.index + match[0].length;
    if (begin < at) continue;
    const end = json[begin] === '"' ? stringEnd(json, begin) : listEnd(json, begin);
    if (end === undefined) continue;
    written += `${json.slice(at, begin)}""`;
    at = end;
  }
  return written + json.slice(at);
}

/** Returns the end of a list of strings; undefined for another list. */
function listEnd(json: string, start: number): number | undefined {
  for (let at = start + 1; at < json.length;) {
    const sign = json[at] ?? "";
    if (sign === "]") return at + 1;
    if (sign === '"') at = stringEnd(json, at);
    else if (/[\s,]/.test(sign)) at += 1;
    else return undefined;
  }
  return undefined;
}

function stringEnd(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === "\\") at += 1;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}

function parseObject(json: string): Json | undefined {
  try {
    return objectOf(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** Returns an object as such, and an empty one for any other value. */
function objectOf(value: unknown): Json {
  // Every non-array object can be read by any key.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** Returns a text that is a string or a list of lines. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.filter((line) => typeof line === "string").join("") : "";
}
