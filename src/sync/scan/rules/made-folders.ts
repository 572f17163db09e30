import { statSync } from "node:fs";

/** Folders of one name that programs fill, and that a person does not write in. */
interface MadeFolder {
  readonly what: string;
  /** Files in the folder above, of which one shows what made the folder. Without this and `inside`, the name is enough. */
  readonly beside?: readonly string[];
  /** A file in the folder that shows it. */
  readonly inside?: string;
}

const PYTHON: MadeFolder = { what: "an environment of Python", inside: "pyvenv.cfg" };

/** Names with a leading dot, such as `.venv`, are missing here because every hidden folder is excluded. */
const MADE_FOLDERS: ReadonlyMap<string, MadeFolder> = new Map<string, MadeFolder>([
  ["node_modules", { what: "installed packages" }],
  ["bower_components", { what: "installed packages" }],
  ["__pycache__", { what: "compiled Python" }],
  ["venv", PYTHON],
  ["env", PYTHON],
  ["virtualenv", PYTHON],
  ["target", { what: "what a build made", beside: ["Cargo.toml", "pom.xml"] }],
  ["build", { what: "what a build made", beside: ["build.gradle", "build.gradle.kts"] }],
]);

/** Why a folder is left out by default, for a person; undefined: it is not. `parent` is an absolute path. */
export function madeFolderReason(parent: string, name: string): string | undefined {
  const made = MADE_FOLDERS.get(name);
  if (made === undefined) return undefined;
  const { what, beside, inside } = made;
  const signs = [...(beside ?? []), ...(inside === undefined ? [] : [`${name}/${inside}`])];
  if (signs.length > 0 && !signs.some((sign) => isFile(`${parent}/${sign}`))) return undefined;
  return `left out by default: ${what}`;
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}
