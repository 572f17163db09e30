import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A program that brought the tree somewhere and is run over it again. */
export interface NoOpPeer {
  readonly name: string;
  readonly run: () => void;
  readonly close: () => void;
}

/** rclone and restic, where they are installed, with their first copies made. Says so where one is not. */
export function noOpPeers(tree: string): readonly NoOpPeer[] {
  return [rclone(tree), restic(tree)].filter((found) => found !== undefined);
}

/** `rclone copy` of the tree to another local folder. */
function rclone(tree: string): NoOpPeer | undefined {
  const home = mkdtempSync(join(tmpdir(), "bench-rclone-"));
  const target = join(home, "target");
  return peer("rclone copy, local to local", home, ["rclone", "copy", tree, target, "--checkers", "16"]);
}

/** `restic backup` of the tree into a local repository. */
function restic(tree: string): NoOpPeer | undefined {
  const home = mkdtempSync(join(tmpdir(), "bench-restic-"));
  const env = { RESTIC_REPOSITORY: join(home, "repository"), RESTIC_PASSWORD: "bench" };
  if (!runs("restic", ["init", "--quiet"], home, env)) return missing("restic", home);
  return peer("restic backup, local repository", home, ["restic", "backup", "--quiet", tree], env);
}

function peer(
  name: string,
  home: string,
  [command = "", ...args]: readonly string[],
  env: NodeJS.ProcessEnv = {},
): NoOpPeer | undefined {
  if (!runs(command, args, home, env)) return missing(command, home);
  return {
    name: `${name}, nothing to do`,
    run: () => {
      if (!runs(command, args, home, env)) throw new Error(`${command} failed`);
    },
    close: () => rmSync(home, { recursive: true, force: true }),
  };
}

function runs(command: string, args: readonly string[], home: string, env: NodeJS.ProcessEnv): boolean {
  const options = {
    stdio: "ignore",
    env: { ...process.env, HOME: home, XDG_CACHE_HOME: home, ...env },
  } as const;
  return spawnSync(command, args, options).status === 0;
}

function missing(command: string, home: string): undefined {
  console.log(
    `${command} is left out: it is not installed here, or its first run failed (apt install ${command})`,
  );
  rmSync(home, { recursive: true, force: true });
}
