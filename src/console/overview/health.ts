import type { Tier } from "../../wire/primitives.ts";

/** A model, as `GET /v1/health` has it. */
export interface ModelHealth {
  readonly state: string;
  readonly message: string;
  readonly hint?: string;
}

/** The answer of `GET /v1/health`, whose schema belongs to the service. */
export interface HealthAnswer {
  readonly status: string;
  readonly version: string;
  readonly embedder: ModelHealth;
  readonly reranker: ModelHealth;
  readonly languageModel: ModelHealth;
  readonly isBackfilling: boolean;
  readonly tiers: Readonly<Record<Tier, string>>;
}
