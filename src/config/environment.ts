import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { databaseProblem, hasPassword } from "./database.ts";
import { ConfigFile, type ServiceConfig } from "./schema.ts";
import type { FileRequest } from "./config-file.ts";

/** Matches a configuration with a port of the embedded service. */
const NamedPort = z.object({ service: z.object({ port: z.number() }) });

/**
 * Checks the address of the database, and replaces it by the one in KBSYNC_DATABASE, which alone may contain a password: others may read
 * a configuration. A hosted service has its own. Throws `config_invalid` and `usage`, and quotes no address.
 */
export function withDatabase(
  parsed: ConfigFile,
  name: string,
  { KBSYNC_DATABASE: given = "" }: FileRequest["env"],
): ConfigFile {
  const { service } = parsed;
  if ("apiUrl" in service) return parsed;
  const { database: configured, databasePasswordFile: passwordFile } = service;
  const problem =
    configured === undefined
      ? undefined
      : (databaseProblem(configured) ??
        (hasPassword(configured)
          ? "expected no password in the address: put it alone into a file, and name that in service.databasePasswordFile"
          : undefined));
  if (problem !== undefined)
    throw new KbsyncError(`${name}: service.database: ${problem}`, { code: "config_invalid", subject: name });
  const problemOfGiven = given === "" ? undefined : databaseProblem(given);
  if (problemOfGiven !== undefined)
    throw new KbsyncError(`KBSYNC_DATABASE: ${problemOfGiven}`, {
      code: "usage",
      subject: "KBSYNC_DATABASE",
    });
  const database = given === "" ? configured : given;
  if (database !== undefined) return { ...parsed, service: { ...service, database } };
  if (passwordFile === undefined) return parsed;
  throw new KbsyncError(
    `${name}: service.databasePasswordFile: expected service.database, whose password it is`,
    {
      code: "config_invalid",
      subject: name,
    },
  );
}

/** `asked` is the port of the command line, `fromEnvironment` that of KBSYNC_PORT; either overrides the configuration. */
export function servicePort(
  service: ServiceConfig,
  asked: number | undefined,
  fromEnvironment: number | undefined,
): ServiceConfig {
  if (!("apiUrl" in service)) return { ...service, port: asked ?? fromEnvironment ?? service.port };
  if (asked === undefined) return service;
  throw new KbsyncError("--port is for the embedded service, but the configuration names a hosted one", {
    code: "usage",
  });
}

/**
 * Returns the port in KBSYNC_PORT. 0, any free port, gives way to a port in the configuration: a user's unit sets it and cannot
 * know what the configuration will name. Throws `usage`.
 */
export function environmentPort(
  written: unknown,
  { KBSYNC_PORT: port = "" }: FileRequest["env"],
): number | undefined {
  if (port === "") return undefined;
  if (/^\d{1,5}$/.test(port) && Number(port) <= 65_535) {
    const isNamed = Number(port) === 0 && NamedPort.safeParse(written).success;
    return isNamed ? undefined : Number(port);
  }
  throw new KbsyncError(`KBSYNC_PORT: expected a port from 0 to 65535, got ${JSON.stringify(port)}`, {
    code: "usage",
  });
}
