import { describe, expect, it } from "vitest";
import { findSecret } from "../../src/formats/secrets.ts";

/** Joined, so that this file is none that a scanner of repositories reports. */
const TOKEN = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");
const KIND = ["RSA", "PRIVATE", "KEY"].join(" ");
const KEY = `-----BEGIN ${KIND}-----\n${"MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0bu3aumM3vC9tWUcnoEsSs0zHZ7Z3b\n".repeat(49)}-----END ${KIND}-----\n`;
const LINE = "The herons stand by the canal.\n";

describe("findSecret", () => {
  const cases: [name: string, text: string, found: unknown][] = [
    ["none in prose", LINE.repeat(100), undefined],
    ["none in an empty text", "", undefined],
    ["a token", `${LINE}${LINE}token: ${TOKEN}\n`, { rule: "github: GITHUB_TOKEN", line: 3 }],
    ["a private key", `${LINE}${KEY}`, { rule: "privatekey: PrivateKey", line: 2 }],
    [
      "a password in an address",
      ["https://ann:p4ssw0rdX9", "wiki.example.org/\n"].join("@"),
      { rule: "basicauth: BasicAuth", line: 1 },
    ],
    [
      "none in addresses of manuals",
      ["https://public:koala", "pypi.example.org/ git+https://git:github_pat_asdf", "example.org/"].join("@"),
      undefined,
    ],
    [
      "a password of one long word",
      ["https://ann:correcthorse", "wiki.example.org/\n"].join("@"),
      { rule: "basicauth: BasicAuth", line: 1 },
    ],
    ["the first of two", `${TOKEN}\n${KEY}`, { rule: "github: GITHUB_TOKEN", line: 1 }],
  ];
  it.each(cases)("findSecret finds %s", async (_name, text, found) => {
    expect(await findSecret(text)).toEqual(found);
  });

  it("finds a secret at any place of a long text, with its line", async () => {
    const size = 64 * 1024;
    for (const before of [size - KEY.length, size - 100, size - 1, size, 2 * size - 50, 3 * size + 7]) {
      const lines = Math.ceil(before / LINE.length);
      const found = await findSecret(`${LINE.repeat(lines)}${KEY}${LINE.repeat(5000)}`);
      expect(found).toEqual({ rule: "privatekey: PrivateKey", line: lines + 1 });
    }
  });
});
