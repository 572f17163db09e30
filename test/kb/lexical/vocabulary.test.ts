import { expect, it } from "vitest";
import { makeVocabulary } from "../../../src/kb/lexical/vocabulary.ts";

/** Time that this thread has worked: other tests do not count. */
const workedMs = (): number => process.threadCpuUsage().user / 1000;

it("reads ids that differ in few characters as fast as other words", () => {
  const vocabulary = makeVocabulary();
  const ids = Array.from({ length: 60_000 }, (_, at) => `w${at.toString(36)}`).join(" ");
  const startMs = workedMs();
  for (let time = 0; time < 10; time++) expect(vocabulary.read(ids).words).toBe(60_000);
  // 0.1 s; a table in which the hashes of such words lie side by side takes over 3 s.
  expect(workedMs() - startMs).toBeLessThan(1500);
});
