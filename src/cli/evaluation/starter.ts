import { lazyModule } from "../../lib/lazy-module.ts";
import { type HeadedFile, STARTER_MAX, starterQuestions } from "../../lib/markup/starter-questions.ts";

/** A starter: YAML, the number of its questions, and that of the headings to choose from. */
export interface Starter {
  readonly text: string;
  readonly questions: number;
  readonly headings: number;
}

const HEADER = `# Questions for \`kbsync eval\`, made from the headings of your documents. Edit them: ask as people ask, in words
# that are not in the document. A heading word for word is the easiest question there is.
#
# - question: may I open the dome in the rain
#   expect: handbook/dome.md     # path below the source's folder, or a glob such as "handbook/**", or a list of these
#   answer: never while it rains # optional: text of the document that one of the first three passages must contain
#   source: ../docs              # optional: search this synced folder only (relative to this file)
`;

const writer = lazyModule((load) => load("yaml") as typeof import("yaml"));

/** Makes a file of questions from headings. Pure. */
export function makeStarter(files: readonly HeadedFile[]): Starter {
  const { questions, headings } = starterQuestions(files, STARTER_MAX);
  const { stringify } = writer();
  const entries = questions.map(({ source, ...question }) =>
    stringify([{ ...question, source: source === "" ? "." : source }], { lineWidth: 0 }),
  );
  return { text: [HEADER, ...entries].join("\n"), questions: questions.length, headings };
}
