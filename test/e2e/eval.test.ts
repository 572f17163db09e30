import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  agreed,
  type Ended,
  kbsync,
  repositoryRoot,
  type Running,
  startUp,
  stop,
  temporaryFolder,
} from "./program.ts";

const temporary = temporaryFolder("eval");
const docs = join(temporary.path, "docs");
const state = join(temporary.path, "state");
const questions = join(temporary.path, "questions.yaml");

let running: Running;

const run = (...args: string[]): Promise<Ended> =>
  kbsync([...args, "--state-dir", state], { cwd: temporary.path });
const evaluate = (text: string, ...args: string[]): Promise<Ended> => {
  writeFileSync(questions, text);
  return run("eval", "questions.yaml", ...args);
};

beforeAll(async () => {
  cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
  running = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
  await agreed(docs, state, 7);
});
afterAll(async () => {
  await stop(running);
  temporary.remove();
});

it("counts an expected file by its path, its folder, a glob or a list", async () => {
  const { code, stdout } = await evaluate(
    ["handbook/dome.md", "handbook/", "hand*/**/dome.*", '["gone.md", "./handbook/dome.md"]']
      .map((expected) => `- question: may I open the dome in the rain\n  expect: ${expected}\n  note: ours\n`)
      .join(""),
  );
  expect([code, stdout]).toEqual([0, "questions  4\nhit@1      1.00\nhit@3      1.00\nMRR        1.00\n"]);
});

it("lists the questions that were missed, with what was expected and what came", async () => {
  const text =
    "- question: may I open the dome in the rain\n  expect: handbook/moved.md\n" +
    "- question: may I open the dome in the rain\n  expect: handbook/dome.md\n";
  const { code, stdout } = await evaluate(text);
  expect(code).toBe(0);
  expect(stdout).toContain("hit@1      0.50\nhit@3      0.50\nMRR        0.50\n\n1 question missed\n");
  expect(stdout).toContain(
    "      expected handbook/moved.md\n      no synced file is at handbook/moved.md\n      found    handbook/dome.md (",
  );
  const json: unknown = JSON.parse((await evaluate(text, "--json", "--tier", "fastest")).stdout);
  expect(json).toMatchObject({
    file: questions,
    questions: 2,
    hit1: 0.5,
    hit3: 0.5,
    mrr: 0.5,
    misses: [{ expect: ["handbook/moved.md"], rank: null, found: [{ path: "handbook/dome.md" }, {}, {}] }],
  });
});

it("ends with 2 for a file of other content, for a missing file and for a tier without folders", async () => {
  const invalid = await evaluate("- question: who?\n  expect: a.md\n\n- question: what?\n  expects: b.md\n");
  expect(invalid.code).toBe(2);
  expect(invalid.stderr).toContain(`${questions}: [1].expect: missing, expected a path or a list of paths`);
  const none = await run("eval", "none.yaml");
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("cannot read the questions ")]);
  const other = await evaluate("- question: who?\n  expect: a.md\n", "--tier", "moderate");
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("no folder has the tier moderate")]);
});

it("refuses a file of questions that is a document itself", async () => {
  const document = join(docs, "questions.yaml");
  writeFileSync(document, "- question: who?\n  expect: a.md\n");
  await run("wait", document);
  const synced = await run("eval", document);
  expect([synced.code, synced.stderr]).toEqual([
    2,
    expect.stringContaining("is a document of the knowledge base"),
  ]);
  rmSync(document);
});
