/**
 * Removes comments (line and block) and trailing commas from JSON text. Replaces each with spaces, so that positions stay
 * the same and a parser's error names the right line. Leaves strings unchanged. Pure.
 */
export function withoutComments(text: string): string {
  const parts: string[] = [];
  /** Index in `parts` of a comma behind an item, followed only by space and comments so far. */
  let comma: number | undefined;
  /** Last token other than space and comments. */
  let last = "";
  for (let at = 0; at < text.length;) {
    const end = tokenEnd(text, at);
    const token = text.slice(at, end);
    at = end;
    if (isComment(token)) parts.push(blank(token));
    else if (/^\s/.test(token)) parts.push(token);
    else {
      if ((token === "}" || token === "]") && comma !== undefined) parts[comma] = " ";
      comma = token === "," && !["", "[", "{", ","].includes(last) ? parts.length : undefined;
      parts.push(token);
      last = token;
    }
  }
  return parts.join("");
}

/** Returns the end of the string, comment, space or character that starts here. */
function tokenEnd(text: string, at: number): number {
  const rest = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return at + (pattern.exec(text)?.[0].length ?? 1);
  };
  switch (text[at]) {
    case '"':
      // The parser reports an unterminated string.
      return rest(/"(?:[^"\\]|\\[^])*"?/y);
    case "/":
      return rest(/\/\/[^\n\r]*|\/\*[^]*?\*\/|\//y);
    case undefined:
    default:
      return rest(/\s+|[^]/y);
  }
}

function isComment(token: string): boolean {
  return token.startsWith("//") || (token.startsWith("/*") && token.length > 3);
}

/** Replaces all but line breaks with spaces. */
function blank(text: string): string {
  return text.replaceAll(/[^\n\r]/g, " ");
}
