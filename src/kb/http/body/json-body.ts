import { hash } from "node:crypto";
import { isUtf8 } from "node:buffer";
import { messageOf, withoutStacks } from "../../../lib/failure.ts";
import { Refusal } from "../../resources/refusal.ts";

/** Maximum values of a body. Bodies of this API have a dozen; one of 40 MB could have 13 million, which take a gigabyte. */
const VALUES_MAX = 10_000;
/** Maximum nesting. Bodies of this API have three levels; thousands can be parsed, but break recursion over the result. */
const LEVELS_MAX = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
const CLOSE_BRACE = 0x7d;

/**
 * Parses a JSON body. Returns undefined for an empty one. Keys named `__proto__` are plain own keys, and the wire schemas
 * copy only known keys, so nothing of a body reaches a prototype. Throws `invalid_body`.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  return withoutStacks(() => parse(bytes));
}

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  // Decoding replaces invalid UTF-8 by U+FFFD: the stored text would differ from the text sent.
  if (!isUtf8(bytes)) throw new Refusal("invalid_body", "The body is not valid UTF-8.");
  refuseShape(bytes);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new Refusal("invalid_body", `The body is not valid JSON: ${mistakeIn(messageOf(error))}.`, {
      cause: error,
    });
  }
}

/** A parsed body and the hash of its bytes. */
export interface HashedJson {
  readonly value: unknown;
  /** SHA-256 of the bytes. */
  readonly sha256: string;
}

/** `parseJsonBody`, with the SHA-256 of the bytes. Throws `invalid_body`. */
export function parseHashedBody(bytes: Buffer): HashedJson {
  return { value: parseJsonBody(bytes), sha256: hash("sha256", bytes, "hex") };
}

/** Describes V8's error in other words, and without the excerpt of the body, which stays out of messages and logs. */
function mistakeIn(message: string): string {
  if (/^(?:Unexpected end|Unterminated)/.test(message)) return "it ends too early";
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  return line === undefined ? "an unexpected character" : `a mistake at line ${line}, column ${column}`;
}

/**
 * Refuses a body with too many values or levels before building any. The number of objects, arrays and commas outside
 * strings bounds the number of values.
 */
function refuseShape(bytes: Buffer): void {
  let values = 0;
  let levels = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = stringEnd(bytes, at + 1);
    else if (byte === COMMA) values += 1;
    else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) levels -= 1;
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      values += 1;
      levels += 1;
    }
    if (values > VALUES_MAX) {
      throw new Refusal("invalid_body", `The body holds more than ${VALUES_MAX} JSON values.`);
    }
    if (levels > LEVELS_MAX) {
      throw new Refusal("invalid_body", `The body is nested deeper than ${LEVELS_MAX} levels.`);
    }
  }
}

/** Index of the quote that ends the string starting at `from`, or the length if there is none. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return bytes.length;
}
