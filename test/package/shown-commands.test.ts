import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layOut } from "../../packaging/program.ts";
import {
  agreed,
  repositoryRoot,
  type Running,
  startUp,
  stop,
  temporaryFolder,
  until,
} from "../e2e/program.ts";
import { shellBlocksOf, shellLinesOf, shownCommands } from "../shown-commands.ts";

/** A command line as it is shown, and what it needs to be run. */
interface Step {
  readonly line: string;
  /** A command of the shell that makes what the line is about. */
  readonly before?: string;
  /** The answer to the question that it asks on a terminal. */
  readonly answer?: string;
  /** Goes on until it is stopped, and has printed this by then. */
  readonly until?: RegExp;
}

/** Why lines are not run here; they are parsed in test/docs.test.ts. */
const NOT_RUN: readonly (readonly [lines: RegExp, reason: string])[] = [
  [/^(?:sudo )?kbsync service (?!install --print)/, "needs systemd: test/systemd"],
  [/^journalctl /, "needs systemd: test/systemd"],
  [/^docker /, "needs Docker: test/containers.test.ts checks what the image is made of"],
  [/^claude /, "a program of somebody else: test/e2e/mcp.test.ts runs what it starts"],
  [/^npm (?:ci|pack|run package:\w+)\b/, "installs, or builds packages: test/package"],
  [/^npm run unpack:servers\b/, "needs the mirror of a distribution: .ci/run"],
  [/^npm start\b/, "syncs the clone itself into its own state folder: the same as kbsync up"],
  [
    /^npm run (?:check|test:\w+|simulate|bench)\b/,
    "the project's own checks; test/docs.test.ts finds their scripts",
  ],
  [/^kbsync serve --config [ab]\.json\b/, "needs PostgreSQL: test/kb/store/postgres"],
  [/^kbsync models\b/, "fetches a model, and changes which one is in use: test/cli"],
];

/** With a daemon that runs on ~/docs and ~/notes. */
const LIVE: readonly Step[] = [
  { line: "kbsync status" },
  { line: "kbsync log -n 50" },
  { line: "kbsync log --follow ~/docs/minutes", until: /may\.md/ },
  { line: "kbsync wait" },
  { line: "kbsync wait ~/docs/plan.md --timeout 30" },
  { line: "kbsync why ~/docs/scan.pdf" },
  { line: "kbsync key link" },
  { line: "kbsync search may I open the dome in the rain" },
  { line: "kbsync search -k 3 --doc ~/docs/plan.md budget" },
  { line: `kbsync search --filter '{"tags": "draft"}' --fresh deadlines` },
  { line: `kbsync search "how do we name branches" --filter '{"tags": "team"}'` },
  { line: "kbsync search the tides --fresh" },
  { line: 'sudo kbsync search "your question" --config /etc/kbsync/kbsync.config.json' },
  { line: "kbsync status --skipped ~/docs" },
  { line: "kbsync ask when may I open the dome" },
  { line: 'kbsync ask "may I open the dome in the rain"' },
  { line: "kbsync ask 'What does this show?' --image gauge.png" },
  { line: 'kbsync ask "what does this meter say?" --image meter.jpg --thread meters' },
  { line: 'kbsync ask "…" --agent desk --json' },
  { line: "kbsync eval questions.yaml" },
  { line: "kbsync eval questions.yaml --tier fastest" },
  { line: "kbsync pause ~/docs" },
  { line: "kbsync pause" },
  { line: "kbsync resume" },
  { line: "kbsync retry" },
  { line: "kbsync retry ~/docs/scan.pdf" },
  { line: "kbsync approve ~/docs" },
  { line: "kbsync undelete --list" },
  { line: "kbsync undelete ~/docs/plan.md", before: "rm ~/docs/plan.md && kbsync wait" },
  { line: "kbsync verify", before: "kbsync wait ~/docs" },
  { line: "kbsync verify --repair" },
  { line: "kbsync key create reader --scopes read" },
  { line: "kbsync key create reader --scopes read --expires 90d" },
  { line: 'kbsync key create "search page" --scopes read --expires 365d' },
  { line: 'kbsync key create "team b" --account team-b' },
  { line: "(umask 077; kbsync key create claude --scopes read > ~/.config/kbsync-claude.key)" },
  { line: "kbsync key list" },
  { line: "kbsync key rotate 6b016a8e36133f0758068e97" },
  { line: "kbsync key revoke 6b016a8e36133f0758068e97" },
  { line: "kbsync key rotate ID" },
  { line: "kbsync key revoke ID" },
  { line: "kbsync mcp" },
  { line: "kbsync mcp --http", until: /127\.0\.0\.1/ },
  { line: "kbsync mcp --http --port 7412", until: /127\.0\.0\.1/ },
  { line: "kbsync backup /backup/kbsync" },
  {
    line: "kbsync backup -c /etc/kbsync/kbsync.config.json --state-dir /var/lib/kbsync /backup/kbsync && ls -dt /backup/kbsync/*/ | tail -n +15 | xargs -r rm -r",
    before: "mv /backup/kbsync /backup/single && mkdir /backup/kbsync",
  },
  { line: "kbsync doctor --quick" },
  { line: "kbsync doctor" },
  { line: "kbsync add ~/papers --tier moderate --owner papers" },
  { line: "kbsync add ~/notes ~/papers --tier moderate" },
  { line: "kbsync remove ~/papers", before: "kbsync wait", answer: "y" },
  {
    line: "kbsync remove ~/papers --keep-documents",
    before: "kbsync add ~/papers --owner papers && kbsync wait",
  },
  { line: "kbsync erase ~/docs/secret.md", before: "rm ~/docs/secret.md" },
  { line: "kbsync erase ~/notes/letter.md", before: "rm ~/notes/letter.md" },
  { line: "kbsync erase ~/docs/private" },
];

/** After that daemon has ended. */
const ALONE: readonly Step[] = [
  { line: "kbsync sync -n" },
  { line: "kbsync sync ~/docs" },
  { line: "kbsync sync --recover" },
  { line: "sudo kbsync sync --recover $at" },
  {
    line: "kbsync restore /backup/kbsync",
    before: "rm -rf /var/lib/kbsync && mv /backup/kbsync /backup/dated && mv /backup/single /backup/kbsync",
  },
  {
    line: "kbsync restore /backup/kbsync/DATED",
    before: "rm -rf /var/lib/kbsync /backup/kbsync && mv /backup/dated /backup/kbsync",
  },
  {
    line: "sudo kbsync restore -c /etc/kbsync/kbsync.config.json --state-dir /var/lib/kbsync --force /backup/kbsync/DATED",
  },
  { line: "kbsync init ~/docs --tier moderate", before: "mkdir init && cd init" },
  {
    line: "kbsync init ~/docs --api-url https://kb.example.com --key-file ~/.config/kbsync/pauthkey",
    before: "mkdir hosted && cd hosted",
  },
  {
    line: "kbsync init DIR --api-url https://api.example --key-file /etc/kbsync/pauthkey",
    before: "mkdir -p three/DIR && cd three",
  },
  {
    line: "sudo kbsync init /srv/handbook --config /etc/kbsync/kbsync.config.json --state-dir /var/lib/kbsync",
    before: "rm /etc/kbsync/kbsync.config.json",
  },
  {
    line: "kbsync run --config /etc/kbsync/kbsync.config.json",
    before: "cp hosted.json /etc/kbsync/kbsync.config.json",
    until: /searchable, /,
  },
  {
    line: "kbsync run",
    before: "mkdir run && cd run && cp ../hosted.json kbsync.config.json",
    until: /searchable, /,
  },
  { line: "kbsync serve --port 7411", before: "cd init", until: /127\.0\.0\.1/ },
  { line: "kbsync up ~/docs", before: "cd init", until: /searchable, / },
  {
    line: "kbsync up ~/docs ~/mail --tier moderate",
    before: "cd init",
    until: /searchable, /,
  },
];

/** The tutorial, whose blocks are run one after the other. */
const TUTORIAL = "docs/TUTORIAL.md";

const isNotRun = (line: string): boolean => NOT_RUN.some(([lines]) => lines.test(line));
const bare = (line: string): string => line.replace(/\s+#.*$/, "").trim();

it("every command that is shown is run, or listed with the reason why it is not", () => {
  const steps = [...LIVE, ...ALONE].map(({ line }) => line);
  const executed = new Set([...steps, ...shellLinesOf(TUTORIAL).map(bare)]);
  const shown = shownCommands();
  expect(shown.filter((line) => !executed.has(line) && !isNotRun(line))).toEqual([]);
  expect(steps.filter((line) => !shown.includes(line) || isNotRun(line))).toEqual([]);
  expect(NOT_RUN.filter(([lines]) => !shown.some((line) => lines.test(line))).map(String)).toEqual([]);
});

const temporary = temporaryFolder("shown");
const top = realpathSync(temporary.path);

/** Text in a picture, or vectors of three tiers, on a busy machine. */
const STEP_MS_MAX = 300_000;
/** What still runs, with the process group of each. */
const started = new Set<ChildProcess>();

afterAll(() => {
  for (const { pid } of started) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  temporary.remove();
});

/** The programs, each by the folder that a reader has on the path. */
const PROGRAMS = [
  { name: "a clone", folder: "clone", bin: repositoryRoot },
  { name: "the installed package", folder: "installed", bin: join(top, "prefix/bin") },
] as const;

/** Lays the package out as `npm install -g` does. */
function installPackage(): void {
  const folder = join(top, "prefix/lib/node_modules/kbsync");
  layOut(folder);
  mkdirSync(join(top, "prefix/bin"));
  chmodSync(join(folder, "dist/main.js"), 0o755);
  symlinkSync("../lib/node_modules/kbsync/dist/main.js", join(top, "prefix/bin/kbsync"));
}

/** Where a line is typed, instead of in the home of the reader. */
interface Place {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Someone who types what the documents show. */
interface Reader {
  readonly home: string;
  readonly root: string;
  readonly state: string;
  /** What stands for the ids and names in the lines. */
  readonly ids: Map<string, string>;
  readonly path: string;
}

function openReader(folder: string, bin: string): Reader {
  const home = join(top, folder);
  const root = join(home, "root");
  return {
    home,
    root,
    state: join(root, "var/lib/kbsync"),
    ids: new Map([["DATED", `$(ls ${root}/backup/kbsync | head -1)`]]),
    path: `${join(home, "bin")}:${bin}:${process.env["PATH"] ?? ""}`,
  };
}

/** Makes the folders and files that the lines are about. */
async function fillHome({ home, state }: Reader): Promise<void> {
  const write = (path: string, text: string, mode = 0o644): void => {
    const to = join(home, path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, text);
    chmodSync(to, mode);
  };
  write("bin/sudo", '#!/bin/sh\nexec "$@"\n', 0o755);
  for (const folder of ["mail", "root/backup", "root/srv/handbook"])
    mkdirSync(join(home, folder), { recursive: true });
  cpSync(join(repositoryRoot, "sample-docs"), join(home, "docs"), { recursive: true });
  cpSync(join(home, "docs/safety-sheet.pdf"), join(home, "docs/scan.pdf"));
  write(
    "docs/plan.md",
    "---\ntags: [draft, team]\n---\n# Plan\n\nThe budget and the deadlines of the dome.\n",
  );
  write("docs/minutes/may.md", "# Minutes of May\n\nThe gate opens at nine.\n");
  write("questions.yaml", "- question: when does the gate open\n  expect: minutes/may.md\n");
  write("docs/secret.md", "# Secret\n\nThe code of the cellar.\n");
  write("notes/letter.md", "# Letter\n\nThe tides in the harbour.\n");
  write("papers/paper.md", "# Paper\n\nOn the naming of branches.\n");
  write("mail/first.md", "# First\n\nA message about the dome.\n");
  write(".config/kbsync/pauthkey", "a-key\n", 0o600);
  const picture = sharp({ create: { width: 200, height: 100, channels: 3, background: "#ffffff" } });
  await picture.clone().png().toFile(join(home, "gauge.png"));
  await picture.clone().jpeg().toFile(join(home, "meter.jpg"));
  const sources = ["docs", "notes"].map((name) => ({ path: join(home, name), ownerId: name }));
  const config = {
    service: { port: 0 },
    stateDir: state,
    sources,
    kb: { agents: [{ id: "desk", knowledge: ["docs"] }] },
  };
  write("kbsync.config.json", JSON.stringify(config));
  write("root/etc/kbsync/kbsync.config.json", JSON.stringify(config));
}

/** A line with the reader's folders and ids in it, and with ports that are free. */
function placed({ root, ids }: Reader, line: string): string {
  const named = [...ids].reduce((text, [shown, id]) => text.replaceAll(shown, id), line);
  return named
    .replaceAll(/(?<![\w~.])\/(?=(?:etc\/kbsync|var\/lib\/kbsync|backup|srv)\b)/g, `${root}/`)
    .replaceAll(/--port \d+/g, "--port 0");
}

function start(
  reader: Reader,
  step: Step,
  place?: Place,
): { readonly child: ChildProcess; readonly output: { text: string } } {
  const { home, root, state } = reader;
  const before = step.before === undefined ? "" : `${placed(reader, step.before)} && `;
  const line = `${before}${placed(reader, step.line)}`;
  const at = `-c ${root}/etc/kbsync/kbsync.config.json --state-dir ${state}`;
  const script = `at="${at}"; ${line}`;
  // A command that asks needs a terminal.
  const [program, ...args] =
    step.answer === undefined
      ? ["bash", "-c", script]
      : ["script", "-qec", `bash -c '${script}'`, "/dev/null"];
  const child = spawn(program, args, {
    cwd: place?.cwd ?? home,
    env: { ...process.env, HOME: home, PATH: reader.path, KBSYNC_LOG: "warn", ...place?.env },
    detached: true,
    stdio: [step.answer === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  started.add(child);
  child.once("close", () => started.delete(child));
  const output = { text: "" };
  let isAnswered = false;
  const collect = (data: Buffer): void => {
    output.text += data.toString();
    if (step.answer === undefined || isAnswered || !output.text.includes("[y/N]")) return;
    isAnswered = true;
    child.stdin?.end(`${step.answer}\n`);
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  return { child, output };
}

/** Runs a step as its user would; `problem` says how it ended otherwise than it should. */
async function run(
  reader: Reader,
  step: Step,
  place?: Place,
): Promise<{ readonly output: string; readonly problem?: string }> {
  const { child, output } = start(reader, step, place);
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  if (step.until !== undefined) {
    const { until: printed } = step;
    await until(`${step.line} to print ${String(printed)}`, () => {
      if (child.exitCode !== null)
        throw new Error(`${step.line} ended with ${child.exitCode}: ${output.text}`);
      return printed.test(output.text);
    });
    // The shell and the program, as Ctrl-C does.
    process.kill(-(child.pid ?? 0), "SIGINT");
  }
  const [code, signal] = await closed;
  const fine: readonly unknown[] = step.until === undefined ? [0] : [0, 130, "SIGINT"];
  const isFine = fine.includes(code ?? signal) && !/a defect in kbsync|unhandled/i.test(output.text);
  return { output: output.text, ...(!isFine && { problem: `ended with ${code ?? signal}: ${output.text}` }) };
}

/** What each program printed, by the line. */
const printed = PROGRAMS.map(() => new Map<string, string>());

/** The lines of an output, without what differs between two runs of one command: figures, ids, keys and addresses. */
function substanceOf(output: string): readonly string[] {
  const lines = output
    .replaceAll(new RegExp(`${top}/(?:${PROGRAMS.map(({ folder }) => folder).join("|")})`, "g"), "~")
    .replaceAll(/\bkb_[\w-]+|#link=\S+|\b[0-9a-f]{8,}\b/g, "ID")
    .replaceAll(/\d[\d.,]*/g, "N")
    // How much of a score is shown depends on whether the vectors were there in time.
    .replaceAll(/[▰▱]+/g, "N")
    .split(/[\r\n]+/);
  return [...new Set(lines.map((line) => line.trim()))].toSorted();
}

describe.each(PROGRAMS)("from $name", ({ name, folder: own, bin }) => {
  const reader = openReader(own, bin);
  const { home, state, ids } = reader;
  const outputs = printed[PROGRAMS.findIndex((program) => program.name === name)];
  beforeAll(async () => {
    if (bin !== repositoryRoot) installPackage();
    await fillHome(reader);
  });

  describe("with a running daemon", () => {
    let running: Running;
    beforeAll(async () => {
      running = await startUp(["up", "--config", join(home, "kbsync.config.json")], state, home);
      await agreed(join(home, "docs"), state);
      await agreed(join(home, "notes"), state);
    });
    afterAll(async () => stop(running));

    it.each(LIVE)(
      "$line",
      async (step) => {
        const { output, problem } = await run(reader, step);
        outputs?.set(step.line, output);
        expect(problem).toBeUndefined();
        const key = /, id (\w{24})\./.exec(output)?.[1];
        if (key !== undefined) ids.set(step.line.includes("reader") ? "6b016a8e36133f0758068e97" : "ID", key);
      },
      STEP_MS_MAX,
    );
  });

  describe("without a daemon", () => {
    let hosted: Running;
    beforeAll(async () => {
      hosted = await startUp(["serve", "--port", "0"], join(home, "hosted-state"), home);
      const { url } = hosted;
      const key = join(home, "hosted-state/pauthkey");
      const service = { apiUrl: url, dbUrl: url, resourcesUrl: url, pauthkeyFile: key };
      const sources = [{ path: join(home, "papers"), ownerId: "hosted" }];
      writeFileSync(
        join(home, "hosted.json"),
        JSON.stringify({ service, sources, stateDir: join(home, "run-state") }),
      );
    });
    afterAll(async () => stop(hosted));

    it.each(ALONE)(
      "$line",
      async (step) => {
        const { output, problem } = await run(reader, step);
        outputs?.set(step.line, output);
        expect(problem).toBeUndefined();
      },
      STEP_MS_MAX,
    );
  });

  describe("the tutorial", () => {
    const folder = join(home, "reader");
    /** A reader's own home, and a port that is free. */
    const asReader = { HOME: folder, XDG_STATE_HOME: join(folder, "registry"), KBSYNC_PORT: "0" };
    let daemon: ReturnType<typeof start> | undefined;
    afterAll(async () => {
      if (daemon === undefined || daemon.child.exitCode !== null) return;
      process.kill(-(daemon.child.pid ?? 0), "SIGINT");
      await once(daemon.child, "close");
    });

    it("the tutorial works as it is written, from the first line to the last", async () => {
      mkdirSync(folder, { recursive: true });
      let cwd = folder;
      for (const block of shellBlocksOf(TUTORIAL)) {
        const lines = block.trim().split("\n");
        const typed = lines.filter((line) => !isNotRun(line));
        const up = typed.find((line) => line.startsWith("kbsync up"));
        const rest = typed.filter((line) => line !== up).join("\n");
        if (rest !== "") {
          const typedThere = await run(reader, { line: `set -e\n${rest}` }, { cwd, env: asReader });
          if (typedThere.problem !== undefined) throw new Error(typedThere.problem);
          outputs?.set(rest, typedThere.output);
        }
        if (up === undefined) continue;
        // It stays in one terminal; all that follows is typed in another one, in the same folder.
        cwd = join(folder, "tutorial");
        daemon = start(reader, { line: up, until: /searchable, / }, { cwd, env: asReader });
        const { output } = daemon;
        await until("the tutorial's folder to be in agreement", () => output.text.includes(" searchable, "));
      }
      expect(daemon).toBeDefined();
    });
  });
});

it("a clone and the installed package print the same in substance", () => {
  // What was stopped ended at any point of its work.
  const stopped = new Set(
    [...LIVE, ...ALONE].flatMap(({ line, until: end }) => (end === undefined ? [] : [line])),
  );
  const [clone, installed] = printed.map((outputs) =>
    Object.fromEntries(
      [...outputs].flatMap(([line, output]) => (stopped.has(line) ? [] : [[line, substanceOf(output)]])),
    ),
  );
  expect(Object.keys(clone ?? {}).length).toBeGreaterThan(LIVE.length);
  expect(installed).toEqual(clone);
});
