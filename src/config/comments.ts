/**
 * JSON text with what people add to it for themselves taken out: comments (`//` to the end of the line, and block
 * comments), and a comma behind the last item. Each is replaced by spaces, so that every position stays what it was and a
 * parser's complaint names the right line. What stands in strings stays. Pure.
 */
export function withoutComments(text: string): string {
  const parts: string[] = [];
  /** Where among the parts a comma stands behind an item, with nothing but space and comments behind it so far. */
  let comma: number | undefined;
  /** What came last that is neither space nor comment. */
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

/** Where the string, comment, space or other character ends that begins here. */
function tokenEnd(text: string, at: number): number {
  const rest = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return at + (pattern.exec(text)?.[0].length ?? 1);
  };
  switch (text[at]) {
    case '"':
      // One without an end is the parser's to complain of.
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

/** As long, and with the same lines. */
function blank(text: string): string {
  return text.replaceAll(/[^\n\r]/g, " ");
}
