// Removes from `node_modules` what nothing on this machine reads (`prepare`): the model runtime's binaries for other machines, 240 MB
// of one npm package, and the headers of Node.js, 67 MB.
import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isForeignRuntime, REPOSITORY } from "./program.ts";

for (const folder of globSync("node_modules/onnxruntime-node/bin/napi-v*/*/*", { cwd: REPOSITORY }))
  if (isForeignRuntime(folder)) rmSync(join(REPOSITORY, folder), { recursive: true });
for (const folder of globSync("node_modules/node/node_modules/*/include", { cwd: REPOSITORY }))
  rmSync(join(REPOSITORY, folder), { recursive: true });
