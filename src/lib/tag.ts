import { hash } from "node:crypto";

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Returns a short name for some texts: up to 50 characters of lower-case base32, from the SHA-256 of the texts. Pure. */
export function tagOf(chars: number, ...texts: readonly string[]): string {
  const bytes = hash("sha256", texts.join("\0"), "buffer");
  let tag = "";
  for (let at = 0; at < chars; at += 1) {
    const bit = at * 5;
    const pair = (bytes.readUInt8(bit >> 3) << 8) | bytes.readUInt8((bit >> 3) + 1);
    tag += BASE32.charAt((pair >> (11 - (bit & 7))) & 31);
  }
  return tag;
}
