import { describe } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { testRebuilds } from "../contract-damage.ts";
import { isSkipped, newDatabase, rowsOf } from "./databases.ts";

describe.skipIf(isSkipped())("a damaged index of words in PostgreSQL", () => {
  testRebuilds(async () => {
    const url = await newDatabase();
    return { open: () => openPostgresStore(url), run: (statement) => rowsOf(url, statement) };
  }, [
    [
      "a segment",
      "UPDATE word_segment SET data = set_byte(data, 9, 255 - get_byte(data, 9)) WHERE first_row = (SELECT max(first_row) FROM word_segment)",
    ],
    ["the head of a run", "UPDATE word_run SET filter = '\\x00'"],
    ["every page", "UPDATE word_page SET data = set_byte(data, 50, 255 - get_byte(data, 50))"],
    ["a run that lacks its pages", "DELETE FROM word_page"],
  ]);
});
