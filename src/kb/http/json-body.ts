import { hash } from "node:crypto";
import { isUtf8 } from "node:buffer";
import { messageOf, withoutStacks } from "../../lib/failure.ts";
import { Refusal } from "../resources/refusal.ts";

/** Values a body may hold. Ours have a dozen; a body of 40 MB could hold 13 million, worth a gigabyte of memory. */
const VALUES_MAX = 10_000;
/** Levels of objects and arrays. Ours have three; thousands are parsed well, and break whatever recurses over them later. */
const LEVELS_MAX = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
const CLOSE_BRACE = 0x7d;

/**
 * Parses a JSON body. Undefined for an empty one. Keys named `__proto__` are plain own keys here, and the wire schemas
 * copy only the keys they know, so nothing of a body reaches a prototype. Throws `invalid_body`.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  return withoutStacks(() => parse(bytes));
}

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  // Decoding would put U+FFFD in place of what is not UTF-8: the text stored would not be the text sent.
  if (!isUtf8(bytes)) throw new Refusal("invalid_body", "The body is not valid UTF-8.");
  refuseShape(bytes);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new Refusal("invalid_body", `The body is not valid JSON: ${excerptFree(messageOf(error))}`, {
      cause: error,
    });
  }
}

/** A parsed body and what its bytes are known by. */
export interface HashedJson {
  readonly value: unknown;
  /** SHA-256 of the bytes. */
  readonly sha256: string;
}

/** `parseJsonBody`, with the SHA-256 of the bytes. Throws `invalid_body`. */
export function parseHashedBody(bytes: Buffer): HashedJson {
  return { value: parseJsonBody(bytes), sha256: hash("sha256", bytes, "hex") };
}

/** V8 quotes the body around the fault; what people send stays out of messages and logs. */
function excerptFree(message: string): string {
  return message.replace(/,? ?(?:\.\.\.)?".*$/s, "").replace(/Unexpected token .*$/s, "unexpected character");
}

/**
 * Refuses too many values or levels without building one. Objects, arrays and commas outside of strings are an upper
 * bound of the values.
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

/** Index of the quote that ends the string beginning at `from`, or the length where none does. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return bytes.length;
}
