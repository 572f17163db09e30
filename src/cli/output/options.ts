import { InvalidArgumentError } from "commander";
import type { ConfigRequest } from "../../config/load.ts";
import type { Context } from "./context.ts";

/** Options of every command. */
export interface CommonOptions {
  readonly config?: string;
  readonly stateDir?: string;
}

/** Builds the request for the configuration. */
export function configRequest(
  context: Context,
  options: CommonOptions & { readonly port?: number },
  folder?: string,
): ConfigRequest {
  return {
    file: options.config,
    stateDir: options.stateDir,
    port: options.port,
    folder,
    cwd: context.cwd,
    env: context.env,
  };
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
    // Reported below, with what is expected.
  }
  throw new InvalidArgumentError('expected conditions as JSON, such as {"tags": "draft"}');
}
