import { spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";

/**
 * Runs a script when this process ends, or when the returned function is called, which resolves after the script. A shell of its own
 * waits for the end of its input, which the kernel closes also after kill -9. In this process the script would keep the runner from
 * hearing that its workers have ended: the files of a server are tens of thousands.
 */
export function endWithThisProcess(
  script: string,
  user: { uid?: number; gid?: number } = {},
): () => Promise<void> {
  const shell = spawn("/bin/sh", ["-c", `cat; ${script}`], {
    ...user,
    cwd: "/",
    // A signal to the group of this process does not end the shell before its script.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  // A pipe is a socket, which would keep this process alive.
  if (shell.stdin instanceof Socket) shell.stdin.unref();
  const exited = once(shell, "exit");
  return async () => {
    shell.ref();
    shell.stdin.end();
    await exited;
  };
}
