const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Longest resource in a list: its text, escaped, and a few fields. */
const RESOURCE_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum length of a list answer without its resources; a proxy's page counts as a whole. */
const REST_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes before a bracket in which its key is looked for: the key and some blanks. */
const KEY_BYTES_MAX = 256;
/** A quote after a backslash begins no key. */
const DATA_KEY = /(?<!\\)"data"\s*:\s*$/;
const RESOURCES_KEY = /(?<!\\)"resources"\s*:\s*$/;

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
  const rest = openPieces(REST_BYTES_MAX, "the list without its resources");
  const element = openPieces(RESOURCE_BYTES_MAX, "a resource in the list");
  let depth = 0;
  /** Depth of the resources array once inside it, else 0. */
  let arrayDepth = 0;
  let inString = false;
  /** Bytes of the next chunk that belong to an escape of a string. */
  let escaped = 0;
  /** Whether the object at depth 2 is the answer's `data`. */
  let inData = false;

  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    const inElement = (): boolean => arrayDepth > 0 && depth > arrayDepth;
    /** Appends the bytes since `from` to the resource or to the rest. Drops commas between resources. */
    const cut = (to: number): void => {
      const piece = bytes.subarray(from, to);
      from = to;
      if (inElement()) element.add(piece);
      else if (arrayDepth === 0) rest.add(piece);
    };
    let at = escaped;
    for (; at < bytes.length; at += 1) {
      if (inString) {
        while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
        if (at >= bytes.length) break;
        inString = false;
        continue;
      }
      const byte = bytes[at] ?? 0;
      switch (byte) {
        case QUOTE: {
          inString = true;
          break;
        }
        case OPEN_BRACE:
        case OPEN_BRACKET: {
          if (arrayDepth === 0 && depth <= 2) cut(at);
          if (depth === 1) inData = byte === OPEN_BRACE && DATA_KEY.test(rest.end());
          const enters =
            arrayDepth === 0 &&
            depth === 2 &&
            inData &&
            byte === OPEN_BRACKET &&
            RESOURCES_KEY.test(rest.end());
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
            onResource(element.take());
          }
          depth -= 1;
          break;
        }
        default:
      }
    }
    escaped = at - bytes.length;
    if (arrayDepth === 0 || inElement()) cut(bytes.length);
  }
  return rest.text();
}

/** Opens a text that arrives in pieces. `add` throws if it is longer than any valid one. */
function openPieces(bytesMax: number, what: string) {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const text = (): string => Buffer.concat(pieces).toString("utf8");
  return {
    add: (piece: Buffer): void => {
      bytes += piece.length;
      if (bytes > bytesMax) throw new Error(`${what} is longer than ${bytesMax} bytes`);
      pieces.push(piece);
    },
    text,
    /** Its last bytes. */
    end: (): string => {
      let first = pieces.length;
      for (let found = 0; first > 0 && found < KEY_BYTES_MAX;) found += pieces[(first -= 1)]?.length ?? 0;
      return Buffer.concat(pieces.slice(first)).subarray(-KEY_BYTES_MAX).toString("latin1");
    },
    /** Returns the text, and begins another one. */
    take: (): string => {
      const whole = text();
      pieces = [];
      bytes = 0;
      return whole;
    },
  };
}
