import { type Command, InvalidArgumentError } from "commander";
import type { Context } from "../output/context.ts";
import { type InstallOptions, installUnit, uninstallUnit } from "./service-install.ts";
import type { UnitRequest } from "./unit-checks.ts";

/** `kbsync service`: the program as a systemd unit. */
export function addService(program: Command, context: Context): void {
  const service = program
    .command("service")
    .description("run kbsync under systemd: install or remove its unit");
  service
    .command("install")
    .description("write the unit for this machine and configuration, enable it and start it")
    .argument(
      "[dir]",
      "folder to run with a unit and a knowledge base of its own (default: the sources in the configuration)",
    )
    .option("--user", "install for your user, not for the system")
    .option(
      "--run-as <user>",
      "run as this user (default: a user that exists only for the unit)",
      accountName,
    )
    .option("--group <name>", "group that may read the folders; may be repeated", groupNames)
    .option("--print", "print the unit, and change nothing")
    .action(async (dir: string | undefined, options: InstallOptions) =>
      installUnit(context, ofFolder(dir, options)),
    );
  service
    .command("uninstall")
    .description("stop and remove the unit; all data stays")
    .argument("[dir]", "folder that has a unit of its own")
    .option("--user", "the unit of your user, not of the system")
    .action(async (dir: string | undefined, options: UnitRequest) =>
      uninstallUnit(context, ofFolder(dir, options)),
    );
}

function ofFolder<T extends UnitRequest>(dir: string | undefined, options: T): T {
  return dir === undefined ? options : { ...options, dir };
}

/** Name of a user or a group, as systemd accepts it (systemd.syntax of users, "strict mode"). */
function accountName(text: string): string {
  if (/^[A-Za-z_][\w.-]{0,30}$/.test(text)) return text;
  throw new InvalidArgumentError("expected the name of a user or a group");
}

function groupNames(text: string, before: readonly string[] = []): string[] {
  return [...before, accountName(text)];
}
