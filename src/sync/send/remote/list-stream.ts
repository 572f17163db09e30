const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/** Longest resource in a list: its text, escaped, and a few fields. */
const RESOURCE_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum length of a list answer without its resources; a proxy's page counts as a whole. */
const REST_BYTES_MAX = 4 * 1024 * 1024;
/** A longer key is neither `data` nor `resources`. */
const KEY_BYTES_MAX = "resources".length;

/**
 * Parses a list answer (`{…, "data": {"resources": [{…}, …], …}}`) as it arrives and passes on the JSON of each resource.
 * Returns the answer without its resources, as text for the caller to parse: a bare service sends a whole collection in
 * one answer, which is too large to buffer. A truncated answer leaves text that is not JSON. Throws if a resource, or the
 * rest, is longer than any valid one.
 */
export async function splitList(
  chunks: AsyncIterable<Uint8Array>,
  onResource: (json: string) => void,
): Promise<string> {
  const rest: Buffer[] = [];
  let element: Buffer[] = [];
  let elementBytes = 0;
  let restBytes = 0;
  let depth = 0;
  /** Depth of the resources array once inside it, else 0. */
  let arrayDepth = 0;
  let inString = false;
  let escaped = false;
  /** Whether the object at depth 2 is the answer's `data`. */
  let inData = false;
  /** The last string outside of the array: a key, or a prefix that is long enough to rule out both keys. */
  let word: Buffer[] = [];
  let wordBytes = 0;
  const endWord = (): void => {
    word = [];
    wordBytes = 0;
  };

  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    let at = 0;
    const inElement = (): boolean => arrayDepth > 0 && depth > arrayDepth;
    /** Appends the bytes since `from` to the resource or to the rest. Drops commas between resources. */
    const cut = (to: number): void => {
      const piece = bytes.subarray(from, to);
      from = to;
      if (inElement()) {
        elementBytes += piece.length;
        refuseAbove(RESOURCE_BYTES_MAX, elementBytes, "a resource in the list");
        element.push(piece);
      } else if (arrayDepth === 0) {
        restBytes += piece.length;
        refuseAbove(REST_BYTES_MAX, restBytes, "the list without its resources");
        rest.push(piece);
      }
    };
    while (at < bytes.length) {
      const byte = bytes[at] ?? 0;
      if (inString) {
        const start = at;
        at = endOfString(bytes, at, escaped);
        escaped = at === bytes.length && oddBackslashes(bytes, start, escaped);
        inString = at === bytes.length;
        if (!inElement() && wordBytes <= KEY_BYTES_MAX) {
          word.push(bytes.subarray(start, at));
          wordBytes += at - start;
        }
        if (!inString) at += 1;
        continue;
      }
      switch (byte) {
        case QUOTE: {
          inString = true;
          escaped = false;
          if (!inElement()) endWord();
          break;
        }
        case OPEN_BRACE:
        case OPEN_BRACKET: {
          const key = arrayDepth === 0 && depth <= 2 ? textOf(word) : "";
          if (depth === 1) inData = byte === OPEN_BRACE && key === "data";
          const enters = byte === OPEN_BRACKET && depth === 2 && inData && key === "resources";
          endWord();
          if (arrayDepth > 0 && depth === arrayDepth) from = at;
          if (enters) cut(at + 1);
          depth += 1;
          if (enters) arrayDepth = depth;
          break;
        }
        case CLOSE_BRACE:
        case CLOSE_BRACKET: {
          if (arrayDepth > 0 && depth === arrayDepth) {
            arrayDepth = 0;
            from = at;
          } else if (inElement() && depth === arrayDepth + 1) {
            cut(at + 1);
            onResource(textOf(element));
            element = [];
            elementBytes = 0;
          }
          depth -= 1;
          break;
        }
        case COMMA: {
          if (!inElement()) endWord();
          break;
        }
        default:
      }
      at += 1;
    }
    if (arrayDepth === 0 || inElement()) cut(bytes.length);
  }
  return textOf(rest);
}

function refuseAbove(max: number, bytes: number, what: string): void {
  if (bytes > max) throw new Error(`${what} is longer than ${max} bytes`);
}

/** Index of the quote that ends the string at `at`; the length if there is none. */
function endOfString(bytes: Buffer, at: number, escaped: boolean): number {
  let from = escaped ? at + 1 : at;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote === -1) return bytes.length;
    let backslashes = 0;
    while (quote - 1 - backslashes >= from && bytes[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    from = quote + 1;
  }
}

/** Whether the chunk ends in the middle of an escape of a string that continues in the next one. */
function oddBackslashes(bytes: Buffer, start: number, escaped: boolean): boolean {
  const from = escaped ? start + 1 : start;
  let count = 0;
  while (bytes.length - 1 - count >= from && bytes[bytes.length - 1 - count] === BACKSLASH) count += 1;
  return count % 2 === 1;
}

function textOf(pieces: readonly Buffer[]): string {
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined
    ? only.toString("utf8")
    : Buffer.concat(pieces).toString("utf8");
}
