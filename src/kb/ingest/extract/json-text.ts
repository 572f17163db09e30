/** Lines of JSON that people laid out are shorter than this on the average. */
const LINE_CHARS = 500;
/** Deeper values are not indented further: spaces would be all there is. */
const INDENT_MAX = 8;

/**
 * Puts line breaks and indents into JSON that has none, and changes nothing else: numbers of any length, escapes and the
 * order of keys stay as they are written. Undefined for what is no JSON, or has lines already.
 */
export function layOutJson(text: string): string | undefined {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed) || trimmed.length / (trimmed.split("\n", 1000).length || 1) < LINE_CHARS)
    return undefined;
  try {
    JSON.parse(trimmed);
  } catch {
    return undefined;
  }
  const parts: string[] = [];
  let depth = 0;
  const newLine = (): void => {
    parts.push(`\n${"  ".repeat(Math.min(depth, INDENT_MAX))}`);
  };
  // Strings, runs of other values, and single signs of structure; white space between them is dropped.
  const tokens = trimmed.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\]:,]+|[{}[\]:,]/gs);
  let before = "";
  for (const [token] of tokens) {
    const opens = before === "{" || before === "[";
    if (token === "}" || token === "]") {
      depth -= 1;
      if (!opens) newLine();
    } else if (opens) newLine();
    parts.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (token === ",") newLine();
    before = token;
  }
  return parts.join("");
}
