import { basename } from "node:path";
import type { Change } from "../../lib/compare-results.ts";
import {
  ANSWER_DEPTH,
  DEPTH,
  type Figures,
  HIT_DEPTH,
  isMissed,
  type Scored,
} from "../../lib/retrieval-figures.ts";
import type { Tier } from "../../wire/primitives.ts";
import { counted, localTime, thousands } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";
import type { Outcome } from "./outcome.ts";
import type { RunComparison } from "./last-runs.ts";
import type { Question } from "./questions.ts";
import { settingName } from "./setting.ts";

/** A run in one tier. */
export interface TierReport {
  readonly tier: Tier;
  /** Name of the setting; absent for a search without further fields. */
  readonly setting?: string;
  /** Whether the folders were synced into this tier for the evaluation alone. */
  readonly isTrial: boolean;
  readonly figures: Figures;
  readonly outcomes: readonly Outcome[];
  /** Null: the questions were not asked in this tier before. */
  readonly last: RunComparison | null;
}

/** A figure that a threshold can be set for. */
export type Metric = "hit1" | "hit3" | "mrr" | "answer";

/** Names of the figures in the table. */
export const METRIC_NAMES: Readonly<Record<Metric, string>> = {
  hit1: "hit@1",
  hit3: "hit@3",
  mrr: "MRR",
  answer: "answer",
};
const METRICS = Object.keys(METRIC_NAMES) as Metric[]; // The type of `METRIC_NAMES` lists its keys.

/** A figure below its threshold. */
export interface Shortfall {
  readonly tier: Tier;
  readonly setting?: string;
  readonly metric: Metric;
  readonly value: number;
  readonly min: number;
}

/** Questions and changes that the text lists per tier; `--json` has all. */
const SHOWN = 20;

/** Returns the figures that are below their thresholds. A figure without questions is no shortfall. */
export function shortfalls(
  reports: readonly Pick<TierReport, "tier" | "setting" | "figures">[],
  thresholds: Partial<Record<Metric, number>>,
): Shortfall[] {
  return reports.flatMap(({ tier, setting, figures }) =>
    METRICS.flatMap((metric) => {
      const value = figures[metric];
      const min = thresholds[metric];
      return value === null || min === undefined || value >= min
        ? []
        : [{ tier, ...(setting !== undefined && { setting }), metric, value, min }];
    }),
  );
}

/** The report for a person: a table, then for each tier the missed questions and the changes. */
export function reportText(file: string, reports: readonly TierReport[]): string {
  const name = basename(file);
  return [
    tableText(reports),
    ...reports.flatMap((report) => [missesText(name, report), lastText(name, report)]),
  ]
    .filter((text) => text !== "")
    .join("\n");
}

/** One line per shortfall. */
export function shortfallText(found: readonly Shortfall[]): string {
  return found
    .map(
      ({ metric, value, min, ...asked }) =>
        `below the threshold: ${settingName(asked)} ${METRIC_NAMES[metric]} is ${value.toFixed(3)}, expected at least ${min}\n`,
    )
    .join("");
}

function tableText(reports: readonly TierReport[]): string {
  const head = ["tier", "questions", ...METRICS.map((metric) => METRIC_NAMES[metric]), "median ms"];
  const rows = reports.map(({ isTrial, figures, ...asked }) => [
    isTrial ? `${settingName(asked)} (trial)` : settingName(asked),
    thousands(figures.questions),
    ...METRICS.map((metric) => shareText(figures[metric])),
    msText(figures.medianMs),
  ]);
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  ");
  return [head, ...rows].map((cells) => `${line(cells)}\n`).join("");
}

function shareText(value: number | null): string {
  return value === null ? "-" : value.toFixed(2);
}

function msText(ms: number | null): string {
  if (ms === null) return "-";
  return ms < 10 ? ms.toFixed(1) : thousands(Math.round(ms));
}

function missesText(name: string, { outcomes, ...asked }: TierReport): string {
  const missed = outcomes.filter(isMissed);
  if (missed.length === 0) return "";
  const lines = missed.slice(0, SHOWN).flatMap((outcome) => missLines(name, outcome));
  return `${settingName(asked)}: ${counted(missed.length, "question")} missed\n${listText(lines, missed.length)}`;
}

function isMiss(rank: number | null): boolean {
  return rank === null || rank > HIT_DEPTH;
}

/** The question, then what was expected and what was found. */
function missLines(name: string, outcome: Outcome): string[] {
  const { line, question } = outcome.question;
  const reasons = missReasons(outcome).map((words) => `      ${visibleLine(words)}`);
  return [`  ${name}:${line}  ${visibleLine(question)}`, ...reasons];
}

function missReasons({ question, rank, answered, ms, came, problem }: Outcome): string[] {
  if (ms === null) return [`no result: ${problem ?? ""}`];
  if (!isMiss(rank) && answered === false)
    return [`found (rank ${rank}), but the answer is in none of the first ${ANSWER_DEPTH} passages`];
  const where = rank === null ? "" : ` (rank ${rank})`;
  const lines = [`expected ${question.expect.join(", ")}${where}`, `came     ${cameWords(came)}`];
  return problem === null ? lines : [problem, ...lines];
}

function cameWords(came: Outcome["came"]): string {
  if (came.length === 0) return "nothing";
  const scores = new Map<string, number>();
  for (const { path, score } of came) {
    const name = path ?? "another document";
    if (!scores.has(name)) scores.set(name, score);
  }
  return [...scores].map(([name, score]) => `${name} (${score.toFixed(2)})`).join(", ");
}

function lastText(name: string, { last, ...asked }: TierReport): string {
  const tier = settingName(asked);
  if (last === null) return "";
  const { before, now, worse, better } = last;
  if (before.questions === 0) return `${tier}: no question is as it was in the last run\n`;
  const figures = METRICS.map((metric) => {
    const [old, current] = [shareText(before[metric]), shareText(now[metric])];
    return `${METRIC_NAMES[metric]} ${old === current ? current : `${old} → ${current}`}`;
  });
  const when = localTime(Date.parse(last.at));
  const changes = [
    ...worse.map((change) => `  worse   ${changeWords(name, change)}`),
    ...better.map((change) => `  better  ${changeWords(name, change)}`),
  ];
  const head = `${tier}: since ${when}, ${counted(before.questions, "question")} in both runs: ${figures.join(", ")}\n`;
  return head + listText(changes.slice(0, SHOWN), changes.length);
}

/** The lines, and the number of further items. `lines` may hold several for each of the first `SHOWN` items. */
function listText(lines: readonly string[], items: number): string {
  const more = items - SHOWN;
  return [...lines, ...(more > 0 ? [`  and ${thousands(more)} more (--json lists all)`] : [])]
    .map((line) => `${line}\n`)
    .join("");
}

function changeWords(name: string, { question, before, now }: Change<Question>): string {
  const parts: string[] = [];
  if (before.rank !== now.rank) parts.push(`${rankWords(before)} → ${rankWords(now)}`);
  if (before.answered !== now.answered) parts.push(now.answered === true ? "answer found" : "answer lost");
  return `${name}:${question.line}  ${visibleLine(question.question)}: ${parts.join(", ")}`;
}

function rankWords({ rank }: Scored): string {
  return rank === null ? `not in ${DEPTH}` : `rank ${rank}`;
}
