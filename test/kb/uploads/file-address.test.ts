import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  FILE_NAME_CHARS_MAX,
  fileAddresses,
  newFileToken,
  safeFileName,
} from "../../../src/kb/uploads/file-address.ts";
import { anyCharacter } from "../../any-character.ts";

describe("safeFileName", () => {
  it.each([
    { given: "report.pdf", name: "report.pdf" },
    { given: "/etc/passwd", name: "passwd" },
    { given: "a/b\\c.txt", name: "c.txt" },
    { given: "folder/", name: "file" },
    { given: "", name: "file" },
    { given: ".", name: "file" },
    { given: "...", name: "file" },
    { given: ".env", name: ".env" },
    { given: 'say "hi"\r\nset-cookie: x.txt', name: "say _hi___set-cookie_ x.txt" },
    { given: "right‮to left.txt", name: "right_to left.txt" },
    { given: `${"x".repeat(500)}.markdown`, name: `${"x".repeat(FILE_NAME_CHARS_MAX - 9)}.markdown` },
  ])("safeFileName makes $name of $given", ({ given, name }) => {
    expect(safeFileName(given)).toBe(name);
  });

  it("safeFileName never returns an empty or long name, a path or several lines, and leaves safe names unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 300 }), (given) => {
        const name = safeFileName(given);
        expect(name.length).toBeGreaterThan(0);
        expect(name.length).toBeLessThanOrEqual(FILE_NAME_CHARS_MAX);
        expect(name).not.toMatch(/[/\\"\p{Cc}]|^\.+$/u);
        expect(name.isWellFormed()).toBe(true);
        expect(safeFileName(name)).toBe(name);
      }),
    );
  });
});

describe("addresses", () => {
  const bases = [
    "http://127.0.0.1:7070",
    "https://files.example.org",
    "https://example.org/kb/files-of-mine",
  ];

  it.each(bases)("recognises the address of any file under %s", (base) => {
    const addresses = fileAddresses(() => base);
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 150 }), (given) => {
        const file = { token: newFileToken(), name: safeFileName(given) };
        const url = new URL(addresses.urlOf(file));
        expect(addresses.classify(url)).toEqual({ kind: "token", token: file.token });
        expect(url.href.startsWith(`${base}/files/`)).toBe(true);
      }),
    );
  });

  it.each([
    { url: "https://example.org/kb", kind: "inside" },
    { url: "https://example.org/kb/", kind: "inside" },
    { url: "https://example.org/kb/files/short/x", kind: "inside" },
    { url: "https://example.org/kb/../kb/rag", kind: "inside" },
    { url: "https://example.org/kbx", kind: "elsewhere" },
    { url: "https://example.org/", kind: "elsewhere" },
    { url: "http://example.org/kb/files", kind: "elsewhere" },
    { url: "https://example.org:444/kb/files", kind: "elsewhere" },
    { url: "https://example.org.evil.test/kb", kind: "elsewhere" },
  ])("classifies $url as $kind", ({ url, kind }) => {
    expect(fileAddresses(() => "https://example.org/kb").classify(new URL(url))).toEqual({ kind });
  });

  describe("of a service on this machine alone", () => {
    const token = newFileToken();
    const addresses = fileAddresses(() => "http://127.0.0.1:7411", true);

    it.each(["http://127.0.0.1:7411", "http://127.0.0.1:9", "http://localhost", "http://[::1]:7411"])(
      "recognises a local service's file under %s",
      (base) => {
        const url = `${base}/files/${token}/x.txt`;
        expect(addresses.classify(new URL(url))).toEqual({ kind: "token", token });
        expect(addresses.reachable(url)).toBe(`http://127.0.0.1:7411/files/${token}/x.txt`);
      },
    );

    it("classifies other hosts, and other paths under other ports, as foreign", () => {
      for (const url of [`http://127.0.0.1.evil.test/files/${token}/x`, "http://localhost:3000/page"]) {
        expect(addresses.classify(new URL(url))).toEqual({ kind: "elsewhere" });
        expect(addresses.reachable(url)).toBe(url);
      }
    });

    it("recognises no loopback address when other machines reach the service", () => {
      const url = new URL(`http://localhost:9/files/${token}/x`);
      expect(fileAddresses(() => "http://10.0.0.1:7411").classify(url)).toEqual({ kind: "elsewhere" });
    });
  });
});
