import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { shellWord } from "../../lib/shell-word.ts";
import { openDatagrams } from "../../system/datagram.ts";
import {
  listedUnits,
  openSystemctl,
  parseProperties,
  type Systemctl,
  systemdVersion,
} from "../../system/systemctl.ts";
import type { Context } from "../output/context.ts";
import { type InstalledUnit, readUnit, writeUnit } from "./installed-unit.ts";
import { planUnit, type UnitPaths, unitPaths, type UnitPlan } from "./unit-plan.ts";
import type { UnitRequest } from "./unit-checks.ts";

/** Options of `kbsync service install`. */
export interface InstallOptions extends UnitRequest {
  readonly print?: boolean;
}

/** Commands for a unit, quoted for a shell: names of units and folders may contain backslashes and spaces. Pure. */
export function unitCommands(
  { unit, stateDir }: Pick<UnitPlan, "unit" | "stateDir">,
  { user }: Pick<UnitRequest, "user">,
): Readonly<Record<"restart" | "journal" | "status", string>> {
  const [sudo, manager] = user === true ? ["", "--user "] : ["sudo ", ""];
  return {
    restart: `${sudo}systemctl ${manager}restart ${shellWord(unit)}`,
    journal: `${sudo}journalctl ${manager}-u ${shellWord(unit)}`,
    status: `${sudo}kbsync status --state-dir ${shellWord(stateDir)}`,
  };
}

/** A line about a result. */
function unitLine(name: string, words: string): string {
  return `${name.padEnd(10)} ${words}\n`;
}

/** The request, completed with the options of an earlier install. */
export function asInstalled<T extends UnitRequest>(request: T, installed: InstalledUnit | undefined): T {
  if (installed === undefined) return request;
  const { config, stateDir, runAs, group } = installed.origin;
  return {
    ...(config !== undefined && { config }),
    ...(stateDir !== undefined && { stateDir }),
    ...(runAs !== undefined && { runAs }),
    ...(group !== undefined && { group }),
    ...request,
  };
}

/**
 * Writes the unit, enables it, and starts or restarts it: an upgrade in place. Throws `unit_foreign`, `unit_unusable`,
 * `unit_failed`, `unit_slow`, `unit_stopped`, `no_systemd`, `not_permitted`, `datagram_unavailable`.
 */
export async function installUnit(context: Context, options: InstallOptions): Promise<void> {
  refuseDatabaseVariable(context, options);
  const { file } = unitPaths(context, options);
  const installed = options.print === true ? undefined : readUnit(file);
  const plan = planUnit(context, asInstalled(options, installed), systemdVersion());
  if (options.print === true) {
    context.stdout.write(plan.text);
    return;
  }
  const systemctl = await managerOf(options);
  // systemd would wait in vain for a program that cannot report READY.
  openDatagrams();
  const printUnit = (name: string, words: string): void => context.stdout.write(unitLine(name, words));
  if (installed?.text === plan.text) printUnit("unchanged", file);
  else {
    writeUnit(file, plan.text);
    printUnit(installed === undefined ? "wrote" : "rewrote", file);
  }
  for (const [name, words] of plan.facts) printUnit(name, words);
  for (const warning of plan.warnings) printUnit("warning", warning);
  await must(systemctl, "daemon-reload");
  await must(systemctl, "enable", "--quiet", plan.unit);
  printUnit("enabled", options.user === true ? "starts when you log in" : "starts with the machine");
  await startUnit(systemctl, plan, options, printUnit);
}

/**
 * Refuses a database that the unit would not know: it does not have the variables of the shell that installs it. Throws
 * `usage`.
 */
function refuseDatabaseVariable({ env }: Context, { dir }: InstallOptions): void {
  if ((env["KBSYNC_DATABASE"] ?? "") === "") return;
  throw new KbsyncError("KBSYNC_DATABASE is set, but a unit does not have the variables of this shell", {
    code: "usage",
    hint:
      dir === undefined
        ? "Unset it. Write the address into service.database, and its password into the file that service.databasePasswordFile names: the unit gets it as a credential."
        : "Unset it here, and write it into /etc/kbsync/INSTANCE.env; INSTANCE is the part of the unit's name behind @.",
  });
}

/** Stops the unit and removes its file. Its data stays. Throws `unit_missing`, `unit_foreign`, `no_systemd`, `not_permitted`. */
export async function uninstallUnit(context: Context, options: UnitRequest): Promise<void> {
  const paths = unitPaths(context, options);
  const installed = readUnit(paths.file);
  if (installed === undefined) {
    throw new KbsyncError(`there is no unit ${paths.file}`, {
      code: "unit_missing",
      subject: paths.file,
      hint: "`kbsync service install` writes one.",
    });
  }
  const systemctl = await managerOf(options);
  const printUnit = (name: string, words: string): void => context.stdout.write(unitLine(name, words));
  await must(systemctl, "disable", "--quiet", "--now", paths.unit);
  printUnit("stopped", paths.unit);
  const others = await otherInstances(systemctl, paths);
  if (others.length === 0) {
    rmSync(paths.file);
    printUnit("removed", paths.file);
  } else printUnit("kept", `${paths.file}, for ${others.join(", ")}`);
  await must(systemctl, "daemon-reload");
  // Clears a former failure, which would be reported of a removed unit. For a unit without one this fails, which does no harm.
  await systemctl("reset-failed", paths.unit);
  // A template's file serves many folders, each with data of its own.
  const data = options.dir === undefined ? installed.origin.data : paths.stateDir;
  printUnit("data", `stays in ${data}: ledger, key and knowledge base. Another install continues with it.`);
}

/** Returns systemctl once a service manager has answered it. Throws `no_systemd`, `not_permitted`. */
async function managerOf({ user }: UnitRequest): Promise<Systemctl> {
  if (user !== true && process.getuid?.() !== 0) {
    throw new KbsyncError("only root may change the system's units", {
      code: "not_permitted",
      hint: "Run it with sudo, or add --user for a unit of your own; --print shows the unit.",
    });
  }
  const systemctl = openSystemctl(user === true);
  const { code, stderr } = await systemctl("show", "--property=Version");
  if (code === 0) return systemctl;
  throw new KbsyncError(`no service manager answers: ${stderr.trim()}`, {
    code: "no_systemd",
    hint:
      user === true
        ? "Log in as that user (sudo and su start no session), or `loginctl enable-linger` first."
        : "This machine was not started by systemd. `kbsync up` runs without it; `kbsync service install --print` shows the unit.",
  });
}

async function startUnit(
  systemctl: Systemctl,
  plan: UnitPlan,
  request: UnitRequest,
  printUnit: (name: string, words: string) => void,
): Promise<void> {
  const { unit } = plan;
  const commands = unitCommands(plan, request);
  const wasRunning = (await systemctl("is-active", "--quiet", unit)).code === 0;
  const { code } = await systemctl("restart", unit);
  const { stdout } = await systemctl("show", unit);
  const { StatusText = "", Result = "", ExecMainStatus = "" } = parseProperties(stdout);
  if (code !== 0) {
    throw new KbsyncError(`${unit} does not start: ${Result}, exit code ${ExecMainStatus}`, {
      code: "unit_failed",
      subject: unit,
      hint: `\`${commands.journal}\` shows why. The unit stays installed.`,
    });
  }
  printUnit(wasRunning ? "restarted" : "started", StatusText);
  printUnit("ask it", commands.status);
  if (request.user === true)
    printUnit("note", "`loginctl enable-linger` lets it run while you are logged out");
}

/** Runs systemctl. Throws `unit_failed`. */
async function must(systemctl: Systemctl, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await systemctl(...args);
  if (code === 0) return;
  throw new KbsyncError(`systemctl ${args.join(" ")} failed: ${stderr.trim()}`, { code: "unit_failed" });
}

/** Other folders whose units have the same file: those that are enabled or running. */
async function otherInstances(systemctl: Systemctl, { file, unit }: UnitPaths): Promise<string[]> {
  if (!file.endsWith("@.service")) return [];
  const wanted = join(dirname(file), "multi-user.target.wants");
  const enabled = existsSync(wanted) ? readdirSync(wanted) : [];
  const list = ["list-units", "--plain", "--no-legend", "--state=active,activating,reloading"];
  const running = listedUnits((await systemctl(...list, "kbsync@*.service")).stdout);
  const all = [...new Set([...enabled, ...running])].toSorted();
  return all.filter((name) => name.startsWith("kbsync@") && name !== unit);
}
