import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";

/** The installation options that a unit file records. */
const Origin = z.object({
  config: z.string().optional(),
  stateDir: z.string().optional(),
  runAs: z.string().optional(),
  group: z.array(z.string()).optional(),
  /** Path of the data. */
  data: z.string(),
});
export type Origin = z.infer<typeof Origin>;

/** A unit file that `kbsync service install` wrote. */
export interface InstalledUnit {
  readonly text: string;
  readonly origin: Origin;
}

/** First lines of a unit file of ours; any other file is foreign. */
const WRITTEN_BY =
  "# Written by `kbsync service install`; the next one rewrites it. `systemctl edit` is for changes of your own.\n";
const ORIGIN = "# install: ";

/** Adds the lines that identify a unit file of ours, with the options for the next install. */
export function withOrigin(text: string, origin: Origin): string {
  return `${WRITTEN_BY}${ORIGIN}${JSON.stringify(origin)}\n${text}`;
}

/** Writes a unit file atomically, so that systemd never reads a part of one. Throws `unit_unusable`. */
export function writeUnit(file: string, text: string): void {
  const temporary = `${file}.new`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(temporary, text, { mode: 0o644 });
    renameSync(temporary, file);
  } catch (error) {
    throw unusable(file, error);
  }
}

/** Reads a unit file, or returns undefined if it is missing. Throws `unit_foreign` for one not of ours, `unit_unusable`. */
export function readUnit(file: string): InstalledUnit | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unusable(file, error);
  }
  const origin = originOf(text);
  if (origin !== undefined) return { text, origin };
  throw new KbsyncError(`${file} was not written by kbsync service install`, {
    code: "unit_foreign",
    subject: file,
    hint: "Move it away first. It was not changed.",
  });
}

function unusable(file: string, cause: unknown): KbsyncError {
  return new KbsyncError(`the unit ${file} cannot be used: ${messageOf(cause)}`, {
    code: "unit_unusable",
    subject: file,
    hint: "Check owner and mode of its folder; --print shows the unit.",
    cause,
  });
}

function originOf(text: string): Origin | undefined {
  if (!text.startsWith(WRITTEN_BY)) return undefined;
  const line = text.slice(WRITTEN_BY.length).split("\n", 1)[0] ?? "";
  if (!line.startsWith(ORIGIN)) return undefined;
  try {
    return Origin.parse(JSON.parse(line.slice(ORIGIN.length)));
  } catch {
    return undefined; // It was edited by hand, so it counts as foreign.
  }
}
