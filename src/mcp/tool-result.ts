import type { CallToolResult } from "@modelcontextprotocol/server";
import { KbsyncError } from "../lib/failure.ts";
import type { Caller, Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";

/** What a tool gives: the same as data, and in words for a model that reads text. */
export interface Told<T> {
  readonly data: T;
  readonly text: string;
}

/**
 * Runs a tool. An expected failure becomes a tool error in words, so that a model can do something about it; anything else
 * rises to `onDefect` and is told as a defect, without its inside.
 */
export async function runTool<T extends Record<string, unknown>>(
  caller: Caller,
  run: (reached: Reached, files: KnownFiles) => Promise<Told<T>>,
  onDefect: (error: unknown) => void,
): Promise<CallToolResult> {
  let files: KnownFiles | undefined;
  try {
    files = caller.files();
    const { data, text } = await run(await caller.reach(), files);
    return { structuredContent: data, content: [{ type: "text", text }] };
  } catch (error) {
    return { isError: true, content: [{ type: "text", text: errorWords(error, onDefect) }] };
  } finally {
    files?.close();
  }
}

function errorWords(error: unknown, onDefect: (error: unknown) => void): string {
  if (error instanceof KbsyncError) {
    const hint = error.hint === undefined ? "" : `\n${error.hint}`;
    return `${error.message} (${error.code})${hint}`;
  }
  onDefect(error);
  return "kbsync failed on this call; its log tells why. (internal)";
}
