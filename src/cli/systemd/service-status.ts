import { KbsyncError } from "../../lib/failure.ts";
import { systemdVersion } from "../../system/systemctl.ts";
import { printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { readUnit } from "./installed-unit.ts";
import { asInstalled, reachManager, unitLine, unitProperties } from "./service-install.ts";
import { planUnit, unitPaths } from "./unit-plan.ts";
import type { UnitRequest } from "./unit-checks.ts";

/** Options of `kbsync service status`. */
export interface UnitStatusOptions extends UnitRequest {
  readonly json?: boolean;
}

/** The output of `kbsync service status --json`. */
export interface UnitStatus {
  readonly unit: string;
  /** Null: it is not installed. */
  readonly file: string | null;
  /** Whether an install would write the same file now; null: unknown. */
  readonly upToDate: boolean | null;
  /** systemd's own words for these. */
  readonly enabled: string;
  readonly active: string;
  readonly sub: string;
  readonly result: string;
  /** The status that the program reports. */
  readonly status: string;
  readonly pid: number | null;
  /** How often it was restarted after a failure. */
  readonly restarts: number;
  readonly since: string | null;
  readonly stateDir: string;
  /** Warnings for a person. */
  readonly warnings: readonly string[];
}

/** `kbsync service status`. Exit code 0 when it runs, 3 when it does not. Throws `no_systemd`. */
export async function reportUnit(context: Context, options: UnitStatusOptions): Promise<void> {
  const paths = unitPaths(context, options);
  const systemctl = await reachManager(options);
  const now = statusOf(await unitProperties(systemctl, paths.unit), {
    unit: paths.unit,
    ...fileStatus(context, options),
  });
  const isRunning = now.active === "active" || now.active === "reloading";
  context.exitCode = isRunning ? EXIT.done : EXIT.service;
  if (options.json === true) printJson(context, now);
  else context.stdout.write(unitStatusText(now, options.user === true));
}

/** The status from systemd's properties of the unit. Pure. */
export function statusOf(
  properties: Readonly<Record<string, string>>,
  known: Pick<UnitStatus, "unit" | "upToDate" | "stateDir" | "warnings">,
): UnitStatus {
  const text = (key: string): string => properties[key] ?? "";
  const orNull = (key: string): string | null => (text(key) === "" ? null : text(key));
  return {
    ...known,
    file: orNull("FragmentPath"),
    enabled: orNull("UnitFileState") ?? "not installed",
    active: text("ActiveState"),
    sub: text("SubState"),
    result: text("Result"),
    status: text("StatusText"),
    pid: Number(text("MainPID")) === 0 ? null : Number(text("MainPID")),
    restarts: Number(text("NRestarts")),
    since: orNull("ActiveEnterTimestamp"),
  };
}

/** The status for a person. Pure. */
export function unitStatusText(now: UnitStatus, isUser: boolean): string {
  const lines: (readonly [string, string])[] = [["unit", `${now.unit}, ${now.enabled}`]];
  if (now.file !== null) lines.push(["file", now.file]);
  if (now.upToDate === false) lines.push(["outdated", "out of date: `kbsync service install` updates it"]);
  for (const warning of now.warnings) lines.push(["warning", warning]);
  const parts = [`${now.active} (${now.sub})`];
  if (now.pid !== null) parts.push(`process ${now.pid}`);
  if (now.active === "active" && now.since !== null) parts.push(`since ${now.since}`);
  if (now.result !== "success" && now.result !== "") parts.push(`last: ${now.result}`);
  if (now.restarts > 0) parts.push(`started again ${now.restarts} ${now.restarts === 1 ? "time" : "times"}`);
  lines.push(["state", parts.join(", ")]);
  if (now.status !== "") lines.push(["says", now.status]);
  lines.push(["data", now.stateDir], ["log", `journalctl ${isUser ? "--user " : ""}-u ${now.unit}`]);
  return lines.map(([name, words]) => unitLine(name, words)).join("");
}

/** The contents of the unit file, and whether it is up to date. A warning says why that cannot be determined. */
export function fileStatus(
  context: Context,
  options: UnitStatusOptions,
): Pick<UnitStatus, "upToDate" | "stateDir" | "warnings"> {
  const paths = unitPaths(context, options);
  let { stateDir } = paths;
  try {
    const installed = readUnit(paths.file);
    if (installed === undefined) return { upToDate: null, stateDir, warnings: [] };
    // A template's file serves many folders, each with data of its own.
    if (options.dir === undefined) stateDir = installed.origin.data;
    const plan = planUnit(context, asInstalled(options, installed), systemdVersion());
    return { upToDate: plan.text === installed.text, stateDir: plan.stateDir, warnings: plan.warnings };
  } catch (error) {
    // A foreign unit, or an unusable configuration: nothing can be compared.
    if (error instanceof KbsyncError) return { upToDate: null, stateDir, warnings: [error.message] };
    throw error;
  }
}
