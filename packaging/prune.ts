// Removes the model runtime's binaries for other machines from `node_modules` (`prepare`). They are 240 MB of one npm package, so npm
// cannot leave them out, and nothing on this machine reads them.
import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isForeignRuntime, REPOSITORY } from "./program.ts";

for (const folder of globSync("node_modules/onnxruntime-node/bin/napi-v*/*/*", { cwd: REPOSITORY }))
  if (isForeignRuntime(folder)) rmSync(join(REPOSITORY, folder), { recursive: true });
