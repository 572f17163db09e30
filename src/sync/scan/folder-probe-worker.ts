import { realpathSync, statSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { answerCalls } from "../../lib/worker-calls.ts";
import { openRules } from "../rules/rules.ts";
import { countFolder } from "./folder-contents.ts";
import type { ProbeMethods } from "./folder-probe.ts";

if (parentPort === null) throw new Error("this module is a worker: start it with openFolderProbe");

const methods: ProbeMethods = {
  realPath: (path) => {
    try {
      const real = realpathSync(path);
      if (statSync(real).isDirectory()) return real;
    } catch (error) {
      const code = codeOf(error) ?? "UNKNOWN";
      if (code !== "ENOENT" && code !== "ENOTDIR") throw unusable(path, `cannot be read: ${code}`);
      throw unusable(path, "does not exist");
    }
    throw unusable(path, "is no folder");
  },
  count: ({ source, bounds }) => countFolder(source.absolutePath, openRules(source), bounds),
};

function unusable(path: string, words: string): KbsyncError {
  return new KbsyncError(`${path} ${words}`, { code: "source_unusable", subject: path });
}

answerCalls(parentPort, methods);
