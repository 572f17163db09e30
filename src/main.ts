#!/usr/bin/env node
/** Oldest Node.js that runs every part; chokidar 6 asks for it. */
const NODE_MIN = [22, 22] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  // Checked before anything else is loaded: on an older Node.js better-sqlite3 crashes instead of failing.
  process.stderr.write(
    `kbsync: Node.js ${NODE_MIN.join(".")} or newer is needed, this is ${process.versions.node}.\n` +
      "From a clone, `npm start` and `npm run kbsync` use the Node.js 24 that `npm ci` installed.\n",
  );
  process.exit(2);
}

const { runProgram } = await import("./cli/program.ts");
process.exitCode = await runProgram(process.argv.slice(2));
