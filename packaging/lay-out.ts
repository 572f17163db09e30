// Lays the program out in a folder that is not there yet, for a container's image: `node packaging/lay-out.ts FOLDER`.
import { layOut } from "./program.ts";

const [target] = process.argv.slice(2);
if (target === undefined) throw new Error("usage: node packaging/lay-out.ts FOLDER");
layOut(target);
