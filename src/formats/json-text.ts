/** A text to send: as a string, or as its JSON literal in UTF-8 with quotes, prepared by a thread. */
export type SentText = string | Uint8Array;

/** Serialises `fields`, followed by a text under `name`. */
export function jsonWithText(fields: object, name: string, text: SentText): string | Buffer {
  if (typeof text === "string") return JSON.stringify({ ...fields, [name]: text });
  const head = JSON.stringify(fields);
  const comma = head === "{}" ? "" : ",";
  const before = Buffer.from(`${head.slice(0, -1)}${comma}${JSON.stringify(name)}:`);
  return Buffer.concat([before, text, AFTER]);
}

/** Returns a text to send as a string. */
export function sentTextOf(text: SentText): string {
  return typeof text === "string" ? text : (JSON.parse(Buffer.from(text).toString("utf8")) as string);
}

const AFTER = Buffer.from("}");
