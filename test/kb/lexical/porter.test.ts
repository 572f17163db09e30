import Database from "better-sqlite3";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, constantFrom, array, property, tuple } from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stem } from "../../../src/kb/lexical/porter.ts";

describe("stem", () => {
  it.each([
    ["caresses", "caress"],
    ["ponies", "poni"],
    ["relational", "relat"],
    ["hopping", "hop"],
    ["filing", "file"],
    ["happy", "happi"],
    ["sky", "sky"],
    ["adoption", "adopt"],
    ["controll", "control"],
    ["generalizations", "gener"],
    ["as", "as"],
    ["bus", "bu"],
    ["hesitanci", "hesit"],
    ["valenci", "valenc"],
    ["digitizer", "digit"],
    ["operator", "oper"],
    ["callousness", "callous"],
    ["electriciti", "electr"],
    ["irritant", "irrit"],
    ["adjustable", "adjust"],
    ["defensible", "defens"],
    ["x".repeat(61) + "ing", "x".repeat(61) + "ing"],
    ["a".repeat(61) + "ing", "a".repeat(61)],
    ["a".repeat(62) + "ing", "a".repeat(62) + "ing"],
  ])("the stem of %s is %s", (word, expected) => {
    expect(stem(word)).toBe(expected);
  });

  describe("compared with FTS5", () => {
    let db: Database.Database;
    beforeAll(() => {
      db = new Database(":memory:");
      db.exec("CREATE VIRTUAL TABLE t USING fts5 (w, tokenize = 'porter ascii')");
      db.exec("CREATE VIRTUAL TABLE v USING fts5vocab (t, 'instance')");
    });
    afterAll(() => {
      db.close();
    });

    const stemsOf = (words: readonly string[]): string[] => {
      db.exec("DELETE FROM t");
      db.prepare("INSERT INTO t (rowid, w) VALUES (1, ?)").run(words.join(" "));
      const rows = db.prepare<[], { term: string; offset: number }>("SELECT term, offset FROM v").all();
      return rows.toSorted((a, b) => a.offset - b.offset).map(({ term }) => term);
    };

    it("stem agrees with FTS5 on the words of this repository", () => {
      const root = join(import.meta.dirname, "..", "..", "..");
      const text = ["package-lock.json", "src/kb/store/store.ts"].map((name) =>
        readFileSync(join(root, name), "utf8"),
      );
      const words = [
        ...new Set(
          text
            .join(" ")
            .toLowerCase()
            .match(/[a-z]+/g),
        ),
      ];
      expect(words.length).toBeGreaterThan(1000);
      expect(words.map(stem)).toEqual(stemsOf(words));
    });

    it("stem agrees with FTS5 on words generated from its suffixes", () => {
      const part = constantFrom(
        ..."s ed ing at bl iz y ational tional enci anci izer logi bli alli entli eli ousli ization ation ator".split(
          " ",
        ),
        ..."alism iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence".split(
          " ",
        ),
        ..."er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize sses ies ss eed e ll x w b a o".split(
          " ",
        ),
        ..."t fl qu".split(" "),
      );
      // FTS5 treats a bare suffix in its own way; none is an English word.
      const start = constantFrom("st", "ab", "cry", "pl", "on", "vow");
      const word = tuple(start, array(part, { maxLength: 4 })).map(
        ([first, parts]) => first + parts.join(""),
      );
      assert(
        property(array(word, { minLength: 30, maxLength: 60 }), (words) => {
          expect(words.map(stem)).toEqual(stemsOf(words));
        }),
        { numRuns: 60 },
      );
    });
  });
});
