import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { openMetrics } from "../../src/metrics/metrics.ts";
import { IDLE_STATUS } from "../fakes/status.ts";
import { allNames, OWN_METRICS, samplesOf, type Sample } from "./names.ts";

const read = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), "utf8");

const Alerts = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string(),
          labels: z.object({ severity: z.enum(["info", "warning", "critical"]) }),
          annotations: z.object({ summary: z.string(), description: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
});
const Dashboard = z.object({
  uid: z.literal("kbsync"),
  panels: z.array(
    z.object({
      id: z.number(),
      type: z.enum(["row", "stat", "timeseries"]),
      title: z.string(),
      description: z.string().optional(),
      targets: z.array(z.object({ expr: z.string() })).default([]),
    }),
  ),
});

const alerts = Alerts.parse(parse(read("ops/alerts.yml"))).groups.flatMap(({ rules }) => rules);
const dashboard = Dashboard.parse(JSON.parse(read("ops/grafana-dashboard.json")));
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Returns the metrics in an expression, with the labels it uses. */
function selectors(expr: string): { name: string; labels: Record<string, string> }[] {
  return [...expr.matchAll(/\b((?:kbsync|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = "", inner = ""]) => ({
      name,
      labels: Object.fromEntries(
        [...inner.matchAll(/(\w+)=~?"([^"]*)"/g)].map(([, key = "", value = ""]) => [key, value]),
      ) as Record<string, string>,
    }),
  );
}
const baseOf = (name: string): string => name.replace(/_(bucket|sum|count)$/, "");

/** Labels that the monitoring system adds, and labels without a fixed set of values. */
const FOREIGN = new Set(["job", "instance", "le"]);
const OPEN = new Set(["status", "outcome", "operation"]);

let names: string[];
let samples: Sample[];
beforeAll(async () => {
  names = await allNames();
  const metrics = openMetrics("0.0.0");
  const states = { embedder: "off", reranker: "off", language_model: "off" } as const;
  const counts = {
    requestsInFlight: 0,
    jobsWaiting: 0,
    oldestJobSeconds: 0,
    jobsOverdue: 0,
    questionsWaiting: 0,
    oldestQuestionSeconds: 0,
    messages: { waiting: 0, failed: 0 },
    resourcesFailed: 0,
    spent: undefined,
  };
  metrics.readService(async () => ({ state: "ready", ...counts, models: states }));
  const figures = { oldestWaitingSeconds: 0, concurrency: 1, planned: true };
  metrics.readDaemon(() => ({ status: IDLE_STATUS, ...figures }));
  samples = samplesOf((await metrics.text()).text);
});

describe("dashboard and alerts", () => {
  it.each(expressions)("%s: uses existing metrics, labels and states", (_title, expr) => {
    const found = selectors(expr);
    expect(found.length + Number(expr.startsWith("up{"))).toBeGreaterThan(0);
    for (const { name, labels } of found) {
      const isHistogram = !names.includes(name);
      expect(names).toContain(isHistogram ? baseOf(name) : name);
      for (const [label, value] of Object.entries(labels)) {
        if (FOREIGN.has(label)) continue;
        expect(OWN_METRICS[baseOf(name)] ?? OWN_METRICS[name]).toContain(label);
        if (OPEN.has(label)) continue;
        const known = samples.filter((sample) => sample.name === name).map((sample) => sample.labels[label]);
        for (const state of value.split("|")) expect(known).toContain(state);
      }
    }
  });

  it("the dashboard and alerts use every metric of the program", () => {
    const shown = new Set(expressions.flatMap(([, expr]) => selectors(expr).map(({ name }) => baseOf(name))));
    expect(Object.keys(OWN_METRICS).filter((name) => !shown.has(name) && !shown.has(baseOf(name)))).toEqual(
      [],
    );
  });

  it("the dashboard describes each panel and gives it a unique id", () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { description } of dashboard.panels.filter(({ type }) => type !== "row"))
      expect(description).toMatch(/\w.*\.$/);
  });
});

describe("the documentation of operations", () => {
  const runbooks = read("TROUBLESHOOTING.md");
  const manual = read("REFERENCE.md");

  it.each(alerts.map(({ alert, annotations }) => [alert, annotations.runbook]))(
    "says what to do about %s, where its runbook leads",
    (alert, runbook) => {
      expect(runbooks).toMatch(new RegExp(`^#### ${alert}$`, "m"));
      expect(runbook).toBe(`docs/TROUBLESHOOTING.md#${alert.toLowerCase()}`);
    },
  );

  it("docs/TROUBLESHOOTING.md names exactly the existing alerts", () => {
    const reported = [...runbooks.matchAll(/^#### (Kbsync\w+)$/gm)].map(([, name = ""]) => name);
    expect(reported.toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  });

  it("docs/REFERENCE.md lists every metric of the program with its labels", () => {
    const rows = [...manual.matchAll(/^\| `(kbsync_\w+)` \|([^|]*)\|/gm)];
    const reported = Object.fromEntries(
      rows.map(([, name = "", labels = ""]) => [
        name,
        [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).toSorted(),
      ]),
    );
    expect(reported).toEqual(OWN_METRICS);
  });
});
