import type { Command } from "commander";

/** Example command lines of each command, as its `--help` and the manual page show them. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  "": ["kbsync up ~/docs", "kbsync search may I open the dome in the rain", "kbsync status"],
  up: ["kbsync up ~/docs", "kbsync up ~/docs ~/mail --tier moderate"],
  run: ["kbsync run --config /etc/kbsync/kbsync.config.json"],
  serve: ["kbsync serve --port 7411"],
  service: ["kbsync service install --user", "kbsync service uninstall --user"],
  "service install": ["kbsync service install --user", "kbsync service install /srv/handbook --print"],
  "service uninstall": ["kbsync service uninstall --user"],
  sync: ["kbsync sync ~/docs", "kbsync sync -n", "kbsync sync --recover"],
  add: ["kbsync add ~/papers --tier moderate --owner papers"],
  remove: ["kbsync remove ~/papers", "kbsync remove ~/papers --keep-documents"],
  status: ["kbsync status", "kbsync status --skipped ~/docs"],
  log: ["kbsync log -n 50", "kbsync log --follow ~/docs/minutes"],
  wait: ["kbsync wait", "kbsync wait ~/docs/plan.md --timeout 30"],
  why: ["kbsync why ~/docs/scan.pdf"],
  search: [
    "kbsync search may I open the dome in the rain",
    "kbsync search -k 3 --doc ~/docs/plan.md budget",
    `kbsync search --filter '{"tags": "draft"}' --fresh deadlines`,
  ],
  ask: ["kbsync ask when may I open the dome", "kbsync ask 'What does this show?' --image gauge.png"],
  eval: ["kbsync eval questions.yaml", "kbsync eval questions.yaml --tier fastest"],
  pause: ["kbsync pause", "kbsync pause ~/docs"],
  resume: ["kbsync resume"],
  retry: ["kbsync retry", "kbsync retry ~/docs/scan.pdf"],
  approve: ["kbsync approve ~/docs"],
  undelete: ["kbsync undelete --list", "kbsync undelete ~/docs/plan.md"],
  erase: ["kbsync erase ~/docs/secret.md", "kbsync erase ~/docs/private"],
  verify: ["kbsync verify", "kbsync verify --repair"],
  key: ["kbsync key create reader --scopes read", "kbsync key list"],
  "key create": ["kbsync key create reader --scopes read --expires 90d"],
  "key link": ["kbsync key link"],
  "key list": ["kbsync key list"],
  "key revoke": ["kbsync key revoke 6b016a8e36133f0758068e97"],
  "key rotate": ["kbsync key rotate 6b016a8e36133f0758068e97"],
  mcp: ["kbsync mcp", "kbsync mcp --http --port 7412"],
  backup: ["kbsync backup /backup/kbsync"],
  restore: ["kbsync restore /backup/kbsync"],
  models: [
    "kbsync models",
    "kbsync models paraphrase-multilingual-MiniLM-L12-v2",
    "kbsync models /srv/models/my-model",
  ],
  doctor: ["kbsync doctor", "kbsync doctor --quick"],
  init: [
    "kbsync init ~/docs --tier moderate",
    "kbsync init ~/docs --api-url https://kb.example.com --key-file ~/.config/kbsync/pauthkey",
  ],
};

/** Returns the example command lines of a command by its full name; none for the program itself. */
export function examplesOf(name: string): readonly string[] {
  return EXAMPLES[name] ?? [];
}

/** Adds its examples to the help of a command. `prefix`: the name of its group with a blank, or nothing. */
export function addExamples(command: Command, prefix: string): void {
  const lines = examplesOf(prefix + command.name());
  if (lines.length === 0) return;
  const heading = lines.length === 1 ? "Example:" : "Examples:";
  command.addHelpText("after", ["", heading, ...lines.map((line) => `  ${line}`)].join("\n"));
}
