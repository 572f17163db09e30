import { InvalidArgumentError, Option } from "commander";
import type { ConfigRequest, NamedFolder } from "../../config/load.ts";
import { Expand, NEIGHBOURS_MAX } from "../../wire/context.ts";
import { Tier } from "../../wire/primitives.ts";
import type { Context } from "./context.ts";

/** Options of every command. */
export interface CommonOptions {
  readonly config?: string;
  readonly stateDir?: string;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFormat?: string;
}

/** Builds the request for the configuration. */
export function configRequest(
  context: Context,
  options: CommonOptions & { readonly port?: number },
  folders?: readonly NamedFolder[],
): ConfigRequest {
  return {
    file: options.config,
    stateDir: options.stateDir,
    port: options.port,
    folders,
    cwd: context.cwd,
    env: context.env,
  };
}

/** Options of a command that syncs folders. */
export interface SourceOptions extends CommonOptions {
  readonly tier?: Tier;
  /** Tier of folders that neither the configuration nor the ledger knows, unless `tier` names one. */
  readonly newTier?: Tier;
}

/** The option of every command that prints data. */
export function jsonOption(): Option {
  return new Option("--json", "print the result as JSON; entries that follow one another as one line each");
}

/** The tier of the folders that a command names. */
export function tierOption(): Option {
  return new Option(
    "--tier <tier>",
    "how the folders are searched: fastest (words), moderate (also meaning), high_accuracy (also compares sentences)",
  ).choices(Tier.options);
}

/** Longest wait of --fresh, in seconds: people wait so long for an answer. */
const FRESH_SECONDS = 10;

/** The option of a question that may wait for a fresh answer. */
export interface FreshOptions {
  readonly fresh?: boolean;
}

/** Waits until everything saved before is searchable. */
export function freshOption(): Option {
  return new Option(
    "--fresh",
    `first wait, up to ${FRESH_SECONDS} seconds, until everything saved before is searchable`,
  );
}

/** Returns the seconds that a question waits; undefined: it does not wait. */
export function waitSecondsOf({ fresh }: FreshOptions): number | undefined {
  return fresh === true ? FRESH_SECONDS : undefined;
}

/** Returns a parser for an option with a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
  };
}

/** Parses an option with a filter of a search. The service checks its conditions. */
export function filterOption(text: string): object {
  try {
    const filter: unknown = JSON.parse(text);
    if (typeof filter === "object" && filter !== null) return filter;
  } catch {
    // Reported below, with the expected form.
  }
  throw new InvalidArgumentError('expected conditions as JSON, such as {"tags": "draft"}');
}

/** Parses how much text around a hit to read. */
export function expandOption(text: string): Expand {
  const expand = Expand.safeParse(text);
  if (expand.success) return expand.data;
  throw new InvalidArgumentError(`expected neighbours, or a number from 1 to ${NEIGHBOURS_MAX}`);
}
