import type { Command } from "commander";
import { KbsyncError } from "../../lib/failure.ts";
import { askDaemon } from "../../sync/daemon/control/client.ts";
import { findService } from "../compose/reached-service.ts";
import { printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { Check, Checked, DoctorGround } from "../doctor-checks/doctor-checks.ts";
import { EXIT } from "../output/exit-code.ts";
import { visibleLine } from "../output/visible.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { loadWithFolders } from "../state/sources.ts";
import { stateFolder } from "../state/state-folder.ts";

interface DoctorOptions extends CommonOptions {
  readonly quick?: boolean;
  readonly json?: boolean;
}

/** A check with its result. */
export interface Examined extends Checked {
  readonly check: string;
  /** No damage and no failure; there may be warnings. */
  readonly sound: boolean;
}

/**
 * `kbsync doctor`: checks that kbsync can work on this machine and that its state is sound, and advises what to do about each
 * problem.
 */
export function addDoctor(program: Command, context: Context): void {
  program
    .command("doctor")
    .description("check machine, folders, service and stored data, and say how to fix what is wrong")
    .option("--quick", "skip the checks that read every text and every file")
    .addOption(jsonOption())
    .action(async (options: DoctorOptions) => doctor(context, options));
}

async function doctor(context: Context, options: DoctorOptions): Promise<void> {
  const config = loadWithFolders(context, options);
  const ground: DoctorGround = {
    config,
    state: stateFolder(config.stateDir),
    env: context.env,
    quick: options.quick === true,
    signal: context.signal,
    daemon: once(() => askDaemon(config.stateDir, "status", {}, { signal: context.signal })),
    reached: once(() => findService(config, stateFolder(config.stateDir), context.env)),
  };
  // Asked at once, side by side: one that does not answer takes its time only once.
  void Promise.allSettled([ground.daemon(), ground.reached()]);
  // Loaded here, because no other command needs the code of the checks.
  const { CHECKS } = await import("../doctor-checks/doctor-checks.ts");
  const examined: Examined[] = [];
  for (const check of CHECKS) {
    context.signal.throwIfAborted();
    examined.push(await examine(check, ground));
  }
  const sound = examined.every((one) => one.sound);
  if (options.json === true) printJson(context, { sound, stateDir: config.stateDir, checks: examined });
  else context.stdout.write(doctorText(examined));
  context.exitCode = sound ? EXIT.done : EXIT.filesFailed;
}

/** Asks once for all checks. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => (asked ??= ask());
}

/** Runs one check. A check that cannot run is a finding too: it must not pass for sound. */
async function examine(check: Check, ground: DoctorGround): Promise<Examined> {
  try {
    const checked = await check.run(ground);
    return {
      check: check.name,
      sound: checked.findings.every(({ level }) => level === "warning"),
      ...checked,
    };
  } catch (error) {
    if (!(error instanceof KbsyncError)) throw error;
    const remedy = error.hint ?? "Check that the state folder is the right one and can be read.";
    const subject = error.subject ?? ground.state.path;
    // A part that could not be checked is not known to be damaged.
    const level = UNSEEN.has(error.code) ? "failure" : "damage";
    const finding = { check: check.name, level, subject, message: error.message, remedy } as const;
    return { check: check.name, sound: false, seen: "could not be checked", findings: [finding] };
  }
}

/** A part that cannot be asked at present. */
const UNSEEN: ReadonlySet<string> = new Set([
  "path_unseen",
  "control_silent",
  "control_lost",
  "daemon_stopping",
]);

/** The result of an unsound check, in a word. */
function troubleOf(findings: Examined["findings"]): string {
  return findings.some(({ level }) => level === "damage") ? "damaged" : "failed";
}

/** The result for a person: one line per check, followed by what is wrong and what to do. */
export function doctorText(examined: readonly Examined[]): string {
  const lines = examined.flatMap(({ check, sound, seen, findings }) => [
    `${(sound ? "ok" : troubleOf(findings)).padEnd(8)} ${check.padEnd(8)} ${visibleLine(seen)}`,
    ...findings.flatMap(({ level, message, remedy }) => [
      `         ${level === "warning" ? "warning: " : ""}${visibleLine(message)}`,
      `         → ${visibleLine(remedy)}`,
    ]),
  ]);
  return `${lines.join("\n")}\n`;
}
