import { expect, it } from "vitest";
import { healthOf, type HealthParts } from "../../src/kb/health.ts";

type Part<K extends "model" | "reranker"> = ReturnType<NonNullable<HealthParts[K]>["state"]>["state"];

/** Returns the health of a service in the given state. */
function health(given: {
  readonly admission?: "starting" | "ready" | "draining";
  readonly model?: Part<"model">;
  readonly reranker?: Part<"reranker">;
  readonly isBackfilling?: boolean;
  readonly isDamaged?: boolean;
  readonly isFailing?: boolean;
}) {
  const { admission = "ready", model = "ready", reranker } = given;
  const state = <S>(of: S) => ({ state: () => ({ state: of, message: "" }) });
  return healthOf({
    admission: { state: () => admission },
    version: "1",
    model: state(model) as HealthParts["model"], // health reads only their state
    reranker: reranker === undefined ? undefined : (state(reranker) as HealthParts["reranker"]),
    language: undefined,
    isBackfilling: given.isBackfilling ?? false,
    isDamaged: given.isDamaged ?? false,
    isFailing: given.isFailing ?? false,
  });
}

it.each([
  ["with a model", {}, /vectors, fused\)$/, /reranked by their sentences$/],
  ["during a backfill", { isBackfilling: true }, /fused\)$/, /until their sentences are embedded$/],
  ["while its model loads", { model: "loading" }, /vectors, fused\)$/, /by their sentences$/],
  ["with a reranker", { reranker: "ready" }, /fused\)$/, /reranked by the reranker$/],
  ["with an unused reranker", { reranker: "idle" }, /fused\)$/, /reranked by the reranker$/],
  ["with a reranker that fails", { reranker: "failing" }, /fused\)$/, /by their sentences$/],
  [
    "without a model",
    { model: "off" },
    /words alone .*there is no model$/,
    /words alone .*there is no model$/,
  ],
  ["with a missing model", { model: "unavailable" }, /^words alone/, /^words alone .*there is no model$/],
  ["with a failing model", { model: "failing" }, /while the model fails$/, /while the model fails$/],
  [
    "with a reranker and no model",
    { model: "off", reranker: "ready" },
    /there is no model$/,
    /^words alone .*reranked by the reranker$/,
  ],
] as const)(
  "health describes how the tiers of a service %s search",
  (_name, given, moderate, highAccuracy) => {
    const { tiers, isBackfilling } = health(given);
    expect(isBackfilling).toBe("isBackfilling" in given);
    expect(tiers.fastest).toBe("words (BM25)");
    expect(tiers.moderate).toMatch(moderate);
    expect(tiers.high_accuracy).toMatch(highAccuracy);
  },
);

it.each([
  ["starting", { admission: "starting", isDamaged: true }],
  ["draining", { admission: "draining", isFailing: true }],
  ["ready", {}],
  ["failing", { isFailing: true }],
  ["damaged", { isFailing: true, isDamaged: true }],
] as const)("health reports the most important state of a service: %s", (status, given) => {
  expect(health(given).status).toBe(status);
});
