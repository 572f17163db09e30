import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { digestOf, fingerprint } from "../../src/formats/digest.ts";
import { decodeText } from "../../src/formats/text.ts";
import { anyCharacter } from "../any-character.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

it.each<{ name: string; bytes: Buffer; text: string }>([
  { name: "a text that ends in a line end", bytes: Buffer.from("# Über\n"), text: "# Über\n" },
  { name: "a text without space around it", bytes: Buffer.from("one"), text: "one" },
  {
    name: "space of many kinds at the end",
    bytes: Buffer.from("one \t\u2003\n\n"),
    text: "one \t\u2003\n\n",
  },
  { name: "space at the start", bytes: Buffer.from("\n one\n"), text: "\n one\n" },
  { name: "nothing but space", bytes: Buffer.from(" \n"), text: " \n" },
  { name: "nothing", bytes: Buffer.alloc(0), text: "" },
  { name: "line ends of Windows", bytes: Buffer.from("a\r\nb\r\n"), text: "a\r\nb\r\n" },
  { name: "a byte order mark", bytes: Buffer.from("\uFEFFone\n"), text: "one\n" },
  { name: "another encoding", bytes: Buffer.from("one\n", "utf16le"), text: "one\n" },
  { name: "another encoding of the same length", bytes: Buffer.from("éé", "utf16le"), text: "éé" },
  { name: "bytes that are no UTF-8", bytes: Buffer.from([0x61, 0xff, 0x0a]), text: "aÿ\n" },
])("hashes bytes and text of $name", ({ bytes, text }) => {
  expect(fingerprint(bytes, text)).toEqual({ hash: sha256(bytes), digest: digestOf(text) });
});

it("returns what two runs over bytes and text would return", () => {
  const space = fc.stringMatching(/^[ \t\n\r\u00A0\uFEFF]{0,4}$/);
  fc.assert(
    fc.property(space, fc.string({ unit: anyCharacter }), space, (before, middle, after) => {
      const bytes = Buffer.from(before + middle + after);
      const decoded = decodeText(bytes);
      if (decoded.kind !== "text") return;
      expect(fingerprint(bytes, decoded.text)).toEqual({
        hash: sha256(bytes),
        digest: digestOf(decoded.text),
      });
    }),
  );
});

it("gives equal digests for trimmed lines and composed letters, and different ones for other texts", () => {
  const text = "cafe\u0301  \n\nend\t\r\n";
  const stored = "caf\u00e9\n\nend";
  expect(digestOf(text)).toBe(digestOf(stored));
  expect(digestOf(text)).not.toBe(digestOf("caf\u00e9\n\n end"));
  expect(fingerprint(Buffer.from(text), text).digest).toBe(digestOf(text));
  expect(fingerprint(Buffer.from(stored), stored).digest).toBe(digestOf(stored));
});
