import { expect, it } from "vitest";
import { healthOf, type HealthParts } from "../../src/kb/health.ts";

type Part<K extends "model" | "reranker"> = ReturnType<NonNullable<HealthParts[K]>["state"]>["state"];

/** Health of a service in such a state. */
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
    model: state(model) as HealthParts["model"], // only their state is asked for
    reranker: reranker === undefined ? undefined : (state(reranker) as HealthParts["reranker"]),
    language: undefined,
    isBackfilling: given.isBackfilling ?? false,
    isDamaged: given.isDamaged ?? false,
    isFailing: given.isFailing ?? false,
  });
}

it.each([
  ["ready, with a model", {}, /vectors, fused\)$/, /reranked by their sentences$/],
  ["ready, while vectors are made", { isBackfilling: true }, /fused\)$/, /until theirs are embedded$/],
  ["loading its model", { model: "loading" }, /vectors, fused\)$/, /by their sentences$/],
  ["with a reranker", { reranker: "ready" }, /fused\)$/, /reranked by the reranker$/],
  ["with a reranker that was not asked yet", { reranker: "idle" }, /fused\)$/, /reranked by the reranker$/],
  ["with a reranker that fails", { reranker: "failing" }, /fused\)$/, /by their sentences$/],
  ["without a model", { model: "off" }, /words alone .*want of a model$/, /words alone .*want of a model$/],
  ["whose model is not found", { model: "unavailable" }, /^words alone/, /^words alone .*want of a model$/],
  ["whose model fails", { model: "failing" }, /while the model fails$/, /while the model fails$/],
  [
    "with a reranker and no model",
    { model: "off", reranker: "ready" },
    /want of a model$/,
    /^words alone .*reranked by the reranker$/,
  ],
] as const)("a service %s says how its tiers search", (_name, given, moderate, highAccuracy) => {
  const { tiers } = health(given);
  expect(tiers.fastest).toBe("words (BM25)");
  expect(tiers.moderate).toMatch(moderate);
  expect(tiers.high_accuracy).toMatch(highAccuracy);
});

it.each([
  ["starting", { admission: "starting", isDamaged: true }],
  ["draining", { admission: "draining", isFailing: true }],
  ["ready", {}],
  ["failing", { isFailing: true }],
  ["damaged", { isFailing: true, isDamaged: true }],
] as const)("a service that is %s says so, and nothing that matters less", (status, given) => {
  expect(health(given).status).toBe(status);
});
