// Builds an MCP bundle, which desktop clients install with a click: `npm run package:mcpb`. It holds no program: it starts the
// kbsync that is installed. https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { z } from "zod";
import { REPOSITORY } from "../program.ts";
import { zipOf } from "./zip.ts";

const { values } = parseArgs({ options: { out: { type: "string", default: REPOSITORY } } });
const { version, description, license } = z
  .object({ version: z.string(), description: z.string(), license: z.string() })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")));

const manifest = {
  manifest_version: "0.3",
  name: "kbsync",
  display_name: "kbsync",
  version,
  description: "Searches and reads the documents of your knowledge base.",
  long_description: `${description} The bundle starts the kbsync that is installed on this machine (\`npm install --global kbsync\`).`,
  author: { name: "The kbsync authors" },
  license,
  keywords: ["documents", "knowledge-base", "search"],
  server: {
    type: "binary",
    entry_point: "server/start.sh",
    mcp_config: { command: "sh", args: ["${__dirname}/server/start.sh"] },
  },
  tools_generated: true,
  prompts_generated: true,
  compatibility: { platforms: ["darwin", "linux"] },
};
const file = join(values.out, `kbsync-${version}.mcpb`);
writeFileSync(
  file,
  zipOf([
    { name: "manifest.json", bytes: Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`) },
    {
      name: "server/start.sh",
      bytes: readFileSync(fileURLToPath(new URL("start.sh", import.meta.url))),
      isProgram: true,
    },
  ]),
);
process.stdout.write(`${file}\n`);
