import {
  commandWord,
  directive,
  emptyFolder,
  escapePath,
  restOfLine,
  unitWord,
  withDirective,
} from "./unit-text.ts";

/** The installed program. */
export interface Program {
  /** The Node.js that runs it. */
  readonly node: string;
  readonly script: string;
  /** Folder with the program and its packages, which the unit must be able to read. */
  readonly packageFolder: string;
}

/** A file that the service manager reads as root and passes to the program. */
export interface Credential {
  readonly id: string;
  readonly path: string;
}

/** Inputs of a generated unit. All paths are absolute. */
export interface UnitFacts {
  readonly program: Program;
  /** After the script. */
  readonly args: readonly string[];
  /** The unit's name, for messages of the program. */
  readonly unit: string;
  /** Default: a dynamic user that exists while the unit runs. */
  readonly user?: string;
  readonly groups: readonly string[];
  /** Synced folders. The unit may read these and no others. */
  readonly sources: readonly string[];
  /** Further files that the program reads: configuration, models. */
  readonly needs: readonly string[];
  /** State folder named by the configuration. Default: the one that the service manager creates. */
  readonly stateDir?: string;
  /** Folder of uploaded files outside the state folder. The unit may write it. */
  readonly filesDir?: string;
  readonly credentials: readonly Credential[];
  /** Top-level folders of this machine. */
  readonly topFolders: readonly string[];
}

/** Folders that programs need to run. Any other top-level folder may hold data. */
const SYSTEM_FOLDERS = new Set(
  "/bin /boot /dev /efi /etc /lib /lib32 /lib64 /libx32 /lost+found /nix /proc /run /sbin /sys /tmp /usr".split(
    " ",
  ),
);
/** `ProtectHome=` covers these. */
const HOME_FOLDERS = ["/home", "/root", "/run/user"];
/** Home folders by path: an LDAP user's home counts although this machine does not list the user. */
const HOMES_OF_PEOPLE = /^\/(?:home|run\/user)\/[^/]+$/;
/** `PrivateTmp=` replaces these. */
const TEMPORARY_FOLDERS = ["/tmp", "/var/tmp"];

/** Generates the system unit for a configuration from the packaged one. Pure. Throws `usage` for what a unit cannot express. */
export function systemUnit(template: string, facts: UnitFacts): string {
  const { sources, stateDir, filesDir, user, groups, credentials } = facts;
  const set = (text: string, key: string, values: readonly string[]): string =>
    withDirective(text, "Service", key, values);
  const hidden = hiddenFolders(facts.topFolders, sources);
  const shown = [facts.program.packageFolder, facts.program.node, ...facts.needs].filter((path) =>
    isBelowAny(path, [...hidden, ...homes(sources), ...TEMPORARY_FOLDERS]),
  );
  const mounted = filesDir === undefined ? sources : [...sources, filesDir];
  let text = afterMounts(withProgram(template, facts.program, commandOf(facts)), mounted);
  text = set(text, "Environment", [`KBSYNC_UNIT=${facts.unit}`]);
  if (user !== undefined) text = set(set(text, "DynamicUser", []), "User", [unitWord(user)]);
  if (groups.length > 0) text = set(text, "SupplementaryGroups", groups.map(unitWord));
  text = set(text, "ProtectHome", [homes(sources).length === HOME_FOLDERS.length ? "tmpfs" : "read-only"]);
  text = set(text, "TemporaryFileSystem", hidden.length === 0 ? [] : [hidden.map(emptyFolder).join(" ")]);
  // A missing source, such as a disk that is not mounted yet, must not stop the others.
  text = set(text, "BindReadOnlyPaths", [
    ...sources.map((path) => unitWord(`-${path}`)),
    ...withoutInner([...new Set(shown)], sources).map(unitWord),
  ]);
  const files = filesDir === undefined ? [] : [unitWord(filesDir)];
  if (stateDir !== undefined) {
    text = set(set(text, "StateDirectory", []), "StateDirectoryMode", []);
    text = set(text, "BindPaths", [unitWord(stateDir), "%C/kbsync", ...files]);
  } else if (user !== undefined) text = set(text, "BindPaths", ["%S/kbsync %C/kbsync", ...files]);
  if (credentials.length > 0)
    text = set(
      text,
      "LoadCredential",
      credentials.map(({ id, path }) => `${id}:${restOfLine(path)}`),
    );
  return text;
}

/** Generates the template unit that syncs one folder per instance; `%f` is the folder. Pure. */
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

/** Generates the user unit from the packaged one. Pure. */
export function userUnit(template: string, facts: Pick<UnitFacts, "program" | "args">): string {
  return withProgram(template, facts.program, commandOf(facts));
}

/** Top-level folders that may hold data and are not sources themselves. The unit sees them empty, except for bind mounts. */
function hiddenFolders(topFolders: readonly string[], sources: readonly string[]): string[] {
  return topFolders
    .filter((path) => !SYSTEM_FOLDERS.has(path) && !HOME_FOLDERS.includes(path) && !sources.includes(path))
    .toSorted();
}

/** Folders of this machine, for `isShared`. All paths are absolute. */
export interface Surroundings {
  readonly topFolders: readonly string[];
  /** Home folders of the machine's users. */
  readonly homes: readonly string[];
  readonly sources: readonly string[];
}

/**
 * Whether a folder holds unrelated data of people and programs: a home, a temporary folder or a top-level folder. A unit
 * that reads one file in it would see the rest too. A folder that is read anyway (a source, a system folder) does not
 * count. Pure.
 */
export function isShared(path: string, { topFolders, homes: people, sources }: Surroundings): boolean {
  if (isBelowAny(path, sources)) return false;
  const covered = [...hiddenFolders(topFolders, []), ...HOME_FOLDERS, ...TEMPORARY_FOLDERS];
  const isHome = people.includes(path) || HOMES_OF_PEOPLE.test(path);
  return covered.includes(path) || (isHome && isBelowAny(path, covered));
}

/** Whether the unit sees a path only through a bind mount. Its parent folders are then replacements that anyone may enter. Pure. */
export function isCovered(path: string, topFolders: readonly string[], sources: readonly string[]): boolean {
  return isBelowAny(path, [...hiddenFolders(topFolders, sources), ...homes(sources), ...TEMPORARY_FOLDERS]);
}

/** Home folders to hide: all, unless one of them is itself a source. */
function homes(sources: readonly string[]): readonly string[] {
  return HOME_FOLDERS.some((home) => sources.includes(home)) ? [] : HOME_FOLDERS;
}

/** Longest unit name that systemd accepts. */
const UNIT_NAME_MAX = 255;

/**
 * Orders the unit after the mounts at and above some folders, including those that no target waits for (`nofail`,
 * `noauto`). It avoids `RequiresMountsFor=`: one failed mount would stop all other sources and their search, and systemd
 * does not restart a unit that failed by dependency. `WantsMountsFor=` would fit, but needs systemd 256. A wanted mount unit
 * that does not exist is ignored silently.
 */
function afterMounts(text: string, folders: readonly string[]): string {
  const units = [...new Set(folders.flatMap(foldersOnTheWay))]
    .map((path) => `${escapePath(path)}.mount`)
    .filter((unit) => unit.length <= UNIT_NAME_MAX);
  if (units.length === 0) return text;
  const wanted = withDirective(text, "Unit", "Wants", [...directive(text, "Wants"), units.join(" ")]);
  return withDirective(wanted, "Unit", "After", [...directive(text, "After"), units.join(" ")]);
}

/** A folder and its ancestors, topmost first, without the root, which is always mounted. */
function foldersOnTheWay(path: string): string[] {
  const parts = path.split("/").slice(1);
  return parts.map((_part, at) => `/${parts.slice(0, at + 1).join("/")}`).filter((each) => each !== "/");
}

/** Sets the start command, and an assertion that fails the start when the program is missing. */
function withProgram(template: string, { script }: Program, command: string): string {
  const text = withDirective(template, "Unit", "AssertPathExists", [restOfLine(script)]);
  return withDirective(text, "Service", "ExecStart", [command]);
}

function commandOf({ program, args }: Pick<UnitFacts, "program" | "args">): string {
  return [program.node, program.script, ...args].map(commandWord).join(" ");
}

/** Leaves out paths inside another one of them, or inside one of `outer`. */
function withoutInner(paths: readonly string[], outer: readonly string[]): string[] {
  return paths.filter((path) => !isBelowAny(path, [...paths.filter((other) => other !== path), ...outer]));
}

function isBelowAny(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}
