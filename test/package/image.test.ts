import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { REPOSITORY } from "../../packaging/program.ts";
import { copyOf, environmentOf, stagesOf } from "../dockerfile.ts";

const FETCHES = /^npm ci /;
const folder = mkdtempSync(join(tmpdir(), "kbsync-image-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the image's first stage, without the fetching", () => {
  const context = join(folder, "build");
  const program = join(folder, "opt/kbsync");
  const stages = stagesOf(readFileSync(join(REPOSITORY, "Dockerfile"), "utf8"));

  const [build] = stages;

  it("lays the program out of nothing but what the Dockerfile copies", () => {
    mkdirSync(context);
    for (const instruction of build?.instructions ?? []) {
      if (instruction.name === "COPY") {
        const { sources, target } = copyOf(instruction);
        for (const source of sources) {
          const to = target === "./" ? join(context, basename(source)) : join(context, target);
          cpSync(join(REPOSITORY, source), to, { recursive: true });
        }
      } else if (instruction.name === "RUN") {
        if (FETCHES.test(instruction.words))
          symlinkSync(join(REPOSITORY, "node_modules"), join(context, "node_modules"));
        else
          execFileSync("sh", ["-ec", instruction.words.replaceAll("/opt/kbsync", program)], {
            cwd: context,
            // It has to pack what was copied.
            env: { ...process.env, KBSYNC_PACKED: undefined },
            stdio: "pipe",
          });
      }
    }
    for (const part of ["dist/main.js", "model", "kbsync.schema.json", "node_modules/better-sqlite3"])
      expect([part, existsSync(join(program, part))]).toEqual([part, true]);
  });

  it("gives a program that runs where its folder cannot be written", () => {
    const state = join(folder, "state");
    const docs = join(folder, "docs");
    cpSync(join(REPOSITORY, "sample-docs"), docs, { recursive: true });
    // As in the image, with its folders below this test's.
    const env = {
      ...environmentOf(stages.at(-1)),
      PATH: process.env["PATH"],
      KBSYNC_LOG: "warn",
      STATE_DIRECTORY: state,
      CACHE_DIRECTORY: join(folder, "cache"),
    };
    execFileSync("chmod", ["-R", "a-w", program]);
    try {
      const args = [join(program, "dist/main.js"), "sync", docs, "--json"];
      const { status, stderr, stdout } = spawnSync(process.execPath, args, {
        cwd: folder,
        env,
        encoding: "utf8",
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(JSON.parse(stdout)).toMatchObject({ sources: [{ files: 7, searchable: 7 }] });
      expect(existsSync(join(state, "ledger.db"))).toBe(true);
    } finally {
      execFileSync("chmod", ["-R", "u+w", program]);
    }
  });
});
