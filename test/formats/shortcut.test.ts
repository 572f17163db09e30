import { expect, it } from "vitest";
import { addressOf } from "../../src/formats/shortcut.ts";
import { URL_CHARS_MAX } from "../../src/wire/constants.ts";

const URL_AT = "https://example.org/a";
const long = `https://example.org/${"x".repeat(URL_CHARS_MAX)}`;

it.each<[what: string, text: string, address: string | undefined]>([
  ["in its section", `[InternetShortcut]\nURL=${URL_AT}\n`, URL_AT],
  ["with blanks around, in any case", `[internetshortcut] \r\nIconIndex=0\r\nurl = ${URL_AT} \r\n`, URL_AT],
  ["after another section", `[Other]\nURL=https://other.org\n[InternetShortcut]\nURL=${URL_AT}`, URL_AT],
  ["not of another section after it", `[InternetShortcut]\nIconIndex=0\n[Other]\nURL=${URL_AT}`, undefined],
  ["not without its section", `URL=${URL_AT}`, undefined],
  ["not of a file", "[InternetShortcut]\nURL=file:///etc/passwd", undefined],
  ["not where it is none", "[InternetShortcut]\nURL=example", undefined],
  ["not where there is none", "[InternetShortcut]\n", undefined],
  [
    "up to the longest address that a service accepts",
    `[InternetShortcut]\nURL=${long.slice(0, URL_CHARS_MAX)}`,
    long.slice(0, URL_CHARS_MAX),
  ],
  [
    "not if it is longer than a service accepts",
    `[InternetShortcut]\nURL=${long.slice(0, URL_CHARS_MAX + 1)}`,
    undefined,
  ],
])("reads the address of a Windows shortcut %s", (_what, text, address) => {
  expect(addressOf(Buffer.from(text), "url")).toBe(address);
});

it.each<[what: string, text: string, address: string | undefined]>([
  [
    "with its entities",
    "<key>URL</key>\n<string>http://x.org/?a=1&amp;b=2</string>",
    "http://x.org/?a=1&b=2",
  ],
  [
    "whose entities are numbers",
    "<key>URL</key><string>http://x.org/&#47;&#x2F;</string>",
    "http://x.org///",
  ],
  [
    "with entities of no character as they are",
    "<key>URL</key><string>http://x.org/?&#0;&#x110000;&lol;</string>",
    "http://x.org/?&#0;&#x110000;&lol;",
  ],
  [
    "with the last character of all",
    "<key>URL</key><string>http://x.org/&#x10ffff;</string>",
    "http://x.org/\u{10FFFF}",
  ],
  ["not without an address", "<key>URL</key><string></string>", undefined],
  ["not of another key", `<key>Other</key><string>${URL_AT}</string>`, undefined],
  ["not of a broken binary list", "bplist00 and no more", undefined],
])("reads the address of a macOS shortcut %s", (_what, text, address) => {
  expect(addressOf(Buffer.from(text), "webloc")).toBe(address);
});

it("finds no address of a Windows shortcut in a binary file", () => {
  expect(addressOf(Buffer.from(`[InternetShortcut]\nURL=${URL_AT}\n\0\0\0\x01`), "url")).toBeUndefined();
});
