import {
  commandWord,
  directive,
  emptyFolder,
  escapePath,
  restOfLine,
  unitWord,
  withDirective,
} from "./unit-text.ts";

/** Where the program lies on this machine. */
export interface Program {
  /** The Node.js that runs it. */
  readonly node: string;
  readonly script: string;
  /** Folder that must be readable for it to run, with all its packages. */
  readonly packageFolder: string;
}

/** A file that the service manager reads for the program, as root. */
export interface Credential {
  readonly id: string;
  readonly path: string;
}

/** What a unit is written for. All paths are absolute. */
export interface UnitFacts {
  readonly program: Program;
  /** After the script. */
  readonly args: readonly string[];
  /** The unit's own name, which the program says when it tells a person about it. */
  readonly unit: string;
  /** Default: a user of its own, that exists while the unit runs. */
  readonly user?: string;
  readonly groups: readonly string[];
  /** Folders that are synced: to be read, and nothing beside them. */
  readonly sources: readonly string[];
  /** What the program must read beside sources: configuration, models. */
  readonly needs: readonly string[];
  /** A state folder that the configuration names. Default: the one that the service manager makes. */
  readonly stateDir?: string;
  readonly credentials: readonly Credential[];
  /** Folders at the top of this machine's tree. */
  readonly topFolders: readonly string[];
}

/** What a program needs of a system to run. Whatever else lies at the top of a tree may hold data. */
const SYSTEM_FOLDERS = new Set(
  "/bin /boot /dev /efi /etc /lib /lib32 /lib64 /libx32 /lost+found /nix /proc /run /sbin /sys /tmp /usr".split(
    " ",
  ),
);
/** `ProtectHome=` covers these. */
const HOME_FOLDERS = ["/home", "/root", "/run/user"];
/** A home by its place, whether or not the user is known to this machine alone (LDAP). */
const HOMES_OF_PEOPLE = /^\/(?:home|run\/user)\/[^/]+$/;
/** `PrivateTmp=` puts others in their place. */
const TEMPORARY_FOLDERS = ["/tmp", "/var/tmp"];

/** The system unit for a configuration, from the packaged one. Pure. Throws `usage` for what no line of a unit can say. */
export function systemUnit(template: string, facts: UnitFacts): string {
  const { sources, stateDir, user, groups, credentials } = facts;
  const set = (text: string, key: string, values: readonly string[]): string =>
    withDirective(text, "Service", key, values);
  const hidden = hiddenFolders(facts.topFolders, sources);
  const shown = [facts.program.packageFolder, facts.program.node, ...facts.needs].filter((path) =>
    isBelowAny(path, [...hidden, ...homes(sources), ...TEMPORARY_FOLDERS]),
  );
  let text = afterMounts(withProgram(template, facts.program, commandOf(facts)), sources);
  text = set(text, "Environment", [`KBSYNC_UNIT=${facts.unit}`]);
  if (user !== undefined) text = set(set(text, "DynamicUser", []), "User", [unitWord(user)]);
  if (groups.length > 0) text = set(text, "SupplementaryGroups", groups.map(unitWord));
  text = set(text, "ProtectHome", [homes(sources).length === HOME_FOLDERS.length ? "tmpfs" : "read-only"]);
  text = set(text, "TemporaryFileSystem", hidden.length === 0 ? [] : [hidden.map(emptyFolder).join(" ")]);
  // A source that is missing (a disk that is not there yet) must not keep the others from being synced.
  text = set(text, "BindReadOnlyPaths", [
    ...sources.map((path) => unitWord(`-${path}`)),
    ...withoutInner([...new Set(shown)], sources).map(unitWord),
  ]);
  if (stateDir !== undefined) {
    text = set(set(text, "StateDirectory", []), "StateDirectoryMode", []);
    text = set(text, "BindPaths", [unitWord(stateDir), "%C/kbsync"]);
  } else if (user !== undefined) text = set(text, "BindPaths", ["%S/kbsync %C/kbsync"]);
  if (credentials.length > 0)
    text = set(
      text,
      "LoadCredential",
      credentials.map(({ id, path }) => `${id}:${restOfLine(path)}`),
    );
  return text;
}

/** The unit for one folder each, from the packaged one; `%f` is the folder. Pure. */
export function instanceUnit(
  template: string,
  facts: Pick<UnitFacts, "program" | "groups" | "user" | "topFolders">,
): string {
  const { program, groups, user, topFolders } = facts;
  const set = (text: string, key: string, values: readonly string[]): string =>
    withDirective(text, "Service", key, values);
  const hidden = hiddenFolders(topFolders, []);
  const shown = [program.packageFolder, program.node].filter((path) =>
    isBelowAny(path, [...hidden, ...HOME_FOLDERS, ...TEMPORARY_FOLDERS]),
  );
  const command = [program.node, program.script, "up"].map(commandWord).join(" ");
  let text = withProgram(template, program, `${command} %f $KBSYNC_ARGS`);
  if (user !== undefined) {
    text = set(set(text, "DynamicUser", []), "User", [unitWord(user)]);
    text = set(text, "BindPaths", ["%S/kbsync-%i %C/kbsync-%i"]);
  }
  if (groups.length > 0) text = set(text, "SupplementaryGroups", groups.map(unitWord));
  text = set(text, "TemporaryFileSystem", hidden.length === 0 ? [] : [hidden.map(emptyFolder).join(" ")]);
  text = set(text, "BindReadOnlyPaths", ["%f", ...withoutInner([...new Set(shown)], []).map(unitWord)]);
  return text;
}

/** The unit of one person's own service manager, from the packaged one. Pure. */
export function userUnit(template: string, facts: Pick<UnitFacts, "program" | "args">): string {
  return withProgram(template, facts.program, commandOf(facts));
}

/** The folders at the top that may hold data and hold no source as a whole. They are shown empty, but for what is bound into them. */
export function hiddenFolders(topFolders: readonly string[], sources: readonly string[]): string[] {
  return topFolders
    .filter((path) => !SYSTEM_FOLDERS.has(path) && !HOME_FOLDERS.includes(path) && !sources.includes(path))
    .toSorted();
}

/** What lies on this machine, for `isShared`. All paths are absolute. */
export interface Surroundings {
  readonly topFolders: readonly string[];
  /** Home folders of the machine's users. */
  readonly homes: readonly string[];
  readonly sources: readonly string[];
}

/**
 * Whether a folder is one in which people and programs keep all they have: a home, a temporary folder, or one at the top
 * of the tree. A unit that has to read one file in it would see the rest as well. One that is read anyway (a source, or a
 * folder of the system) is none. Pure.
 */
export function isShared(path: string, { topFolders, homes: people, sources }: Surroundings): boolean {
  if (isBelowAny(path, sources)) return false;
  const covered = [...hiddenFolders(topFolders, []), ...HOME_FOLDERS, ...TEMPORARY_FOLDERS];
  const isHome = people.includes(path) || HOMES_OF_PEOPLE.test(path);
  return covered.includes(path) || (isHome && isBelowAny(path, covered));
}

/** Whether a unit shows a path only by what is bound there: those above it are others then, which everybody may enter. Pure. */
export function isCovered(path: string, topFolders: readonly string[], sources: readonly string[]): boolean {
  return isBelowAny(path, [...hiddenFolders(topFolders, sources), ...homes(sources), ...TEMPORARY_FOLDERS]);
}

/** The home folders that are hidden: all, unless one of them is a source as a whole. */
function homes(sources: readonly string[]): readonly string[] {
  return HOME_FOLDERS.some((home) => sources.includes(home)) ? [] : HOME_FOLDERS;
}

/** Longest name of a unit. */
const UNIT_NAME_MAX = 255;

/**
 * The unit after the mounts at and above some folders, also those that no target waits for (`nofail`, `noauto`). Not
 * `RequiresMountsFor=`: a mount that fails would keep all other sources from being synced and their documents from being
 * found, and systemd does not start a unit again that failed by another one. `WantsMountsFor=` is what is meant, but came
 * with systemd 256; a mount unit that does not exist is wanted in vain, without a word.
 */
function afterMounts(text: string, folders: readonly string[]): string {
  const units = [...new Set(folders.flatMap(foldersOnTheWay))]
    .map((path) => `${escapePath(path)}.mount`)
    .filter((unit) => unit.length <= UNIT_NAME_MAX);
  if (units.length === 0) return text;
  const wanted = withDirective(text, "Unit", "Wants", [...directive(text, "Wants"), units.join(" ")]);
  return withDirective(wanted, "Unit", "After", [...directive(text, "After"), units.join(" ")]);
}

/** A folder and those above it, from the top on. The top itself is always mounted. */
function foldersOnTheWay(path: string): string[] {
  const parts = path.split("/").slice(1);
  return parts.map((_part, at) => `/${parts.slice(0, at + 1).join("/")}`).filter((each) => each !== "/");
}

/** The unit with the command that starts a program, and without a start where that is gone. */
function withProgram(template: string, { script }: Program, command: string): string {
  const text = withDirective(template, "Unit", "AssertPathExists", [restOfLine(script)]);
  return withDirective(text, "Service", "ExecStart", [command]);
}

function commandOf({ program, args }: Pick<UnitFacts, "program" | "args">): string {
  return [program.node, program.script, ...args].map(commandWord).join(" ");
}

/** Without what lies in another one of them, or in one of `outer`. */
function withoutInner(paths: readonly string[], outer: readonly string[]): string[] {
  return paths.filter((path) => !isBelowAny(path, [...paths.filter((other) => other !== path), ...outer]));
}

function isBelowAny(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}
