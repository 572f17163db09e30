import type { CallToolResult } from "@modelcontextprotocol/server";
import { KbsyncError } from "../lib/failure.ts";
import type { Caller, Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";

/** Result of a tool, as data and as text for models that read text. */
export interface ToolOutput<T> {
  readonly data: T;
  readonly text: string;
}

/**
 * Runs a tool. An expected failure becomes a tool error with its message and hint, which a model can act on. Any other
 * error goes to `onDefect` and becomes a generic error without details.
 */
export async function runTool<T extends Record<string, unknown>>(
  caller: Caller,
  run: (reached: Reached, files: KnownFiles) => Promise<ToolOutput<T>>,
  onDefect: (error: unknown) => void,
): Promise<CallToolResult> {
  try {
    const files = caller.files();
    try {
      const { data, text } = await run(await caller.reach(), files);
      return { structuredContent: data, content: [{ type: "text", text }] };
    } finally {
      files.close();
    }
  } catch (error) {
    return { isError: true, content: [{ type: "text", text: errorText(error, onDefect) }] };
  }
}

/** Describes a failure for the model. Reports an unexpected one to `onDefect` and does not describe it. */
function errorText(error: unknown, onDefect: (error: unknown) => void): string {
  if (error instanceof KbsyncError) {
    const hint = error.hint === undefined ? "" : `\n${error.hint}`;
    return `${error.message} (${error.code})${hint}`;
  }
  onDefect(error);
  return "kbsync failed on this call; its log has the reason. (internal)";
}
