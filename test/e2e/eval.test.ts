import { cpSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
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
const evaluate = (...args: string[]): Promise<Ended> => run("eval", ...args);

beforeAll(async () => {
  cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
  running = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
  await agreed(docs, state, 7);
});
afterAll(async () => {
  await stop(running);
  temporary.remove();
});

it("writes a starter from the headings of the sample folder, which finds the right files", async () => {
  const { code, stdout } = await evaluate("--init");
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^\S+questions\.yaml: 7 questions, from 7 headings /),
  });
  expect(readFileSync(questions, "utf8")).toContain(
    "- question: If somebody is hurt\n  expect: handbook/night-shift.md\n  answer: Call 112 ",
  );
  const first = await evaluate("--min-hit3", "0.9", "--min-answer", "0.9");
  expect(first.code).toBe(0);
  expect(first.stdout).toMatch(
    /^tier +questions +hit@1 +hit@3 +MRR +answer +median ms\nfastest +7 +\d\.\d\d +1\.00 /,
  );
});

it("does not overwrite a file, and writes none where it would become a document", async () => {
  const again = await evaluate("--init", "questions.yaml");
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("questions.yaml exists already")]);
  const inside = await evaluate("--init", join(docs, "questions.yaml"));
  expect([inside.code, inside.stderr]).toEqual([2, expect.stringContaining("lies in the synced folder")]);
  expect(existsSync(join(docs, "questions.yaml"))).toBe(false);
});

const Report = z.object({
  gotWorse: z.boolean(),
  shortfalls: z.array(z.object({ tier: z.string(), metric: z.string() })),
  tiers: z.array(
    z.object({
      tier: z.string(),
      isTrial: z.boolean(),
      figures: z.object({ questions: z.number(), hit3: z.number() }),
      last: z.object({ worse: z.array(z.object({ question: z.object({ line: z.number() }) })) }).nullable(),
    }),
  ),
});
const reportOf = ({ stdout }: Ended) => Report.parse(JSON.parse(stdout));

it("names a question that got worse, ends with 1, and compares with the better run again", async () => {
  const own = join(temporary.path, "own.yaml");
  const question = "- question: may visitors touch the focuser\n  expect: handbook/tele*\n";
  writeFileSync(own, `${question}  answer: Visitors never touch the focuser\n`);
  expect((await evaluate(own, "--no-worse")).code).toBe(0);
  const path = join(docs, "handbook", "telescopes.md");
  const before = readFileSync(path, "utf8");
  writeFileSync(path, before.replaceAll("Visitors never touch the focuser", "Everybody may turn the knob"));
  await run("wait", path);
  const refused = await evaluate(own, "--no-worse");
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(
    /\n {2}worse {3}own\.yaml:1 {2}may visitors touch the focuser: .*answer lost\n/,
  );
  const json = await evaluate(own, "--no-worse", "--json");
  expect([json.code, reportOf(json)]).toMatchObject([
    1,
    { gotWorse: true, tiers: [{ tier: "fastest", last: { worse: [{ question: { line: 1 } }] } }] },
  ]);
  // Without --no-worse, the run becomes the one to compare with.
  expect((await evaluate(own)).code).toBe(0);
  expect((await evaluate(own, "--no-worse")).code).toBe(0);
  writeFileSync(path, before);
  await run("wait", path);
});

it("tries a tier that is not in use in a temporary copy, and leaves nothing of it", async () => {
  const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith("kbsync-eval-"));
  const had = copies().length;
  const ended = await evaluate("--tier", "fastest", "--tier", "moderate", "--json", "--min-mrr", "1");
  expect(ended.stderr).toContain("to moderate in a temporary folder, for this evaluation only");
  expect(reportOf(ended).tiers).toMatchObject([
    { tier: "fastest", isTrial: false, figures: { questions: 7 } },
    { tier: "moderate", isTrial: true, figures: { questions: 7, hit3: 1 } },
  ]);
  expect(ended.code).toBe(reportOf(ended).shortfalls.length > 0 ? 1 : 0);
  expect(copies().length).toBe(had);
  expect((await run("status")).stdout).not.toContain("moderate");
});

it("ends with 2 and the line of what is wrong", async () => {
  const wrong = join(temporary.path, "wrong.yaml");
  writeFileSync(wrong, "- question: who?\n  expect: a.md\n\n- question: what?\n  expects: b.md\n");
  const invalid = await evaluate(wrong);
  expect(invalid.code).toBe(2);
  expect(invalid.stderr).toContain(`${wrong}:4: expect: missing, expected a path or a list of paths`);
  expect(invalid.stderr).toContain(`${wrong}:5: expects: unknown key`);
  writeFileSync(wrong, "- question: who?\n  expect: a.md\n  source: elsewhere\n");
  expect((await evaluate(wrong)).stderr).toContain(`${wrong}:1: source: expected a synced folder (${docs})`);
  const none = await evaluate("none.yaml");
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("kbsync eval --init")]);
  const document = join(docs, "questions.yaml");
  writeFileSync(document, readFileSync(questions));
  await run("wait", document);
  const synced = await evaluate(document);
  expect([synced.code, synced.stderr]).toEqual([
    2,
    expect.stringContaining("is a document of the knowledge base"),
  ]);
  rmSync(document);
});

it("counts a question whose file is not synced as a miss, and ends with 1 below a threshold", async () => {
  const gone = join(temporary.path, "gone.yaml");
  writeFileSync(gone, "- question: may I open the dome in the rain\n  expect: handbook/moved.md\n");
  const { code, stdout } = await evaluate(gone, "--min-hit3", "0.5");
  expect(code).toBe(1);
  expect(stdout).toContain(
    "no synced file matches what is expected\n      expected handbook/moved.md\n      came     handbook/dome.md (",
  );
  expect(stdout).toContain("below the threshold: fastest hit@3 is 0.000, expected at least 0.5\n");
});
