#!/usr/bin/env node
// Imported as a whole: a named import that an older Node.js lacks would fail before the check below can report it.
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { writeError } from "./cli/output/journal.ts";

/** Oldest Node.js that runs every part; chokidar 6 asks for it. */
const NODE_MIN = [22, 22] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  // Checked before anything else is loaded: on an older Node.js better-sqlite3 crashes instead of failing.
  writeError(
    `kbsync: Node.js ${NODE_MIN.join(".")} or newer is needed, this is ${process.versions.node}.\n` +
      "From a clone, `npm start` and `./kbsync` use the Node.js 24 that `npm ci` installed.\n",
  );
  process.exit(2);
}

useCodeCache();
const { runProgram } = await import("./cli/program.ts");
process.exitCode = await runProgram(process.argv.slice(2));

/**
 * Stores compiled code between starts, which saves a fifth of each start. Uses a folder of this user: another user may
 * have written what lies in the system's temporary folder, where Node.js would put it. Stores nothing if the folder
 * cannot be written.
 */
function useCodeCache(): void {
  const { CACHE_DIRECTORY = "", XDG_CACHE_HOME = "", NODE_COMPILE_CACHE } = process.env;
  if (NODE_COMPILE_CACHE !== undefined) return; // Node.js does it already.
  // systemd gives a unit's own folders as a list.
  const [unitsOwn = ""] = CACHE_DIRECTORY.split(":");
  const folder = unitsOwn === "" ? usersCache(XDG_CACHE_HOME) : unitsOwn;
  if (folder !== undefined) nodeModule.enableCompileCache(join(folder, "code"));
}

/** The cache of a user; undefined for one without a home, such as a unit's own user whose home is not set. */
function usersCache(named: string): string | undefined {
  if (named !== "") return join(named, "kbsync");
  try {
    return join(homedir(), ".cache", "kbsync");
  } catch {
    return undefined;
  }
}
