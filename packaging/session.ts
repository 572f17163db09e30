// Draws docs/session.svg, the terminal session of README.md, from the built program over the sample documents
// (`npm run session`). It needs `script` of util-linux, which gives the program a terminal.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { REPOSITORY } from "./program.ts";

const COLUMNS = 80;
/** Width of the terminal that `up` runs in: its lines hold the real paths and the whole link, which the picture shortens. */
const UP_COLUMNS = 120;
const CELL_PX = 8;
const LINE_PX = 19;
const MARGIN_PX = 20;
/** The home folder as the picture shows it. */
const SHOWN_HOME = "/home/ann";
const START_MS_MAX = 60_000;

/** Colours of the terminal's palette that the program uses, on a dark ground. */
const PALETTE: Readonly<Record<string, string>> = {
  "31": "#f87171",
  "32": "#4ade80",
  "33": "#facc15",
  "36": "#67e8f9",
};
const GROUND = "#0f172a";
const TEXT = "#e2e8f0";
const PROMPT = "#94a3b8";

/** Stands for the escape character, which a regular expression had better not hold. */
const ESCAPE = "␛";

/** A piece of a line in one style. */
interface Run {
  readonly text: string;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly colour: string | undefined;
}

const scratch = mkdtempSync(join(tmpdir(), "kbsync-session-"));
const home = join(scratch, "home");
const runtime = join(scratch, "run");
mkdirSync(home);
mkdirSync(runtime, { mode: 0o700 });
cpSync(join(REPOSITORY, "sample-docs"), join(home, "observatory"), { recursive: true });
const env = {
  PATH: process.env["PATH"],
  HOME: home,
  XDG_RUNTIME_DIR: runtime,
  TERM: "xterm-256color",
  LANG: "C.UTF-8",
};
const program = `${process.execPath} ${join(REPOSITORY, "dist/main.js")}`;
const inTerminal = (command: string, columns = COLUMNS): readonly string[] => [
  "-qefc",
  `stty cols ${columns}; ${command.replace(/^kbsync/, program)}`,
];

const lines: Run[][] = [];
const show = (command: string, output: string): void => {
  lines.push([
    { text: "$ ", bold: false, dim: false, colour: PROMPT },
    { text: command, bold: true, dim: false, colour: undefined },
  ]);
  lines.push(...screenOf(output), []);
};
const run = (command: string): void => {
  const output = execFileSync("script", [...inTerminal(command), "/dev/null"], {
    cwd: home,
    env,
    encoding: "utf8",
  });
  show(command, output);
};

const record = join(scratch, "up");
const daemon = spawn("script", ["-f", ...inTerminal("kbsync up observatory --port 0", UP_COLUMNS), record], {
  cwd: home,
  env,
  stdio: "ignore",
});
try {
  const untilMs = Date.now() + START_MS_MAX;
  let output = "";
  while (!output.includes(" searchable, ")) {
    if (Date.now() > untilMs) throw new Error(`the program did not start: ${output}`);
    await pause(200);
    output = readRecord();
  }
  show("kbsync up observatory", output);
  run("kbsync search -k 1 who may switch off the heater of the mirror");
  execFileSync("mv", ["handbook/telescopes.md", "handbook/instruments.md"], {
    cwd: join(home, "observatory"),
  });
  await pause(3000);
  lines.push([
    { text: "$ ", bold: false, dim: false, colour: PROMPT },
    {
      text: "mv observatory/handbook/telescopes.md observatory/handbook/instruments.md",
      bold: true,
      dim: false,
      colour: undefined,
    },
  ]);
  run("kbsync log -n 1");
  run("kbsync status");
} finally {
  const ended = new Promise((resolve) => daemon.on("close", resolve));
  // The program loses its terminal, and ends.
  daemon.kill("SIGTERM");
  await ended;
  await pause(1000);
  rmSync(scratch, { recursive: true, force: true });
}
writeFileSync(join(REPOSITORY, "docs/session.svg"), drawn(lines.slice(0, -1)));

/** What the program has printed so far, without the lines of `script` itself. */
function readRecord(): string {
  try {
    return readFileSync(record, "utf8").replaceAll(/^Script (?:started|done) on .*\n?/gm, "");
  } catch {
    return "";
  }
}

/** The lines that stay on the screen: a carriage return begins a line again, and `ESC [ K` erases its rest. */
function screenOf(output: string): Run[][] {
  const shown = output
    .replaceAll("\u001B", ESCAPE)
    .replaceAll(home, SHOWN_HOME)
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:7411")
    .replaceAll(/#link=\S+/g, "#link=…")
    .replaceAll(/␛\]8;;.*?␛\\/g, "");
  return shown
    .trimEnd()
    .split("\n")
    .map((line) => runsOf(line.replace(/\r$/, "").split("\r").at(-1) ?? ""));
}

function runsOf(line: string): Run[] {
  const runs: Run[] = [];
  let [bold, dim, colour] = [false, false, undefined as string | undefined];
  for (const part of line.split(/(␛\[[0-9;]*[A-Za-z])/)) {
    const code = /^␛\[([0-9;]*)m$/.exec(part)?.[1];
    if (code === undefined) {
      if (part !== "" && !part.startsWith(ESCAPE)) runs.push({ text: part, bold, dim, colour });
      continue;
    }
    if (code === "1") bold = true;
    else if (code === "2") dim = true;
    else if (code === "22") [bold, dim] = [false, false];
    else colour = PALETTE[code];
  }
  return runs;
}

function drawn(rows: readonly (readonly Run[])[]): string {
  const wrapped = rows.flatMap(wrap);
  const width = COLUMNS * CELL_PX + 2 * MARGIN_PX;
  const height = wrapped.length * LINE_PX + 2 * MARGIN_PX + LINE_PX;
  const texts = wrapped.map((row, at) => {
    let cell = 0;
    const spans = row.map(({ text, bold, dim, colour }) => {
      const x = MARGIN_PX + cell * CELL_PX;
      cell += cellsOf(text);
      const weight = bold ? ' font-weight="600"' : "";
      const faint = dim ? ' opacity="0.5"' : "";
      const fill = colour === undefined ? "" : ` fill="${colour}"`;
      const length = cellsOf(text) * CELL_PX;
      return `<tspan x="${x}" textLength="${length}"${weight}${faint}${fill}>${escaped(text)}</tspan>`;
    });
    return `<text y="${MARGIN_PX + LINE_PX * (at + 1.6)}" xml:space="preserve">${spans.join("")}</text>`;
  });
  const buttons = ["#f87171", "#facc15", "#4ade80"].map(
    (colour, at) => `<circle cx="${MARGIN_PX + 6 + at * 18}" cy="18" r="5.5" fill="${colour}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="${TEXT}">`,
    "<title>A folder becomes a knowledge base, is searched, and a renamed file keeps its document</title>",
    `<rect width="${width}" height="${height}" rx="10" fill="${GROUND}"/>`,
    ...buttons,
    ...texts,
    "</svg>\n",
  ].join("\n");
}

/** A terminal breaks a line that is too long for it. */
function wrap(row: readonly Run[]): readonly Run[][] {
  const rows: Run[][] = [[]];
  let left = COLUMNS;
  for (const part of row) {
    let rest = part.text;
    while (rest.length > left) {
      rows.at(-1)?.push({ ...part, text: rest.slice(0, left) });
      rest = rest.slice(left);
      rows.push([]);
      left = COLUMNS;
    }
    rows.at(-1)?.push({ ...part, text: rest });
    left -= rest.length;
  }
  return rows;
}

/** All characters that the program prints here are one cell wide. */
function cellsOf(text: string): number {
  return Array.from(text).length;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
