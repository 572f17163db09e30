import { readdirSync } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import type { RelativePath, FolderPath } from "../plan/model.ts";
import type { FolderRules, Rules } from "./rules/rules.ts";
import type { Follower } from "./follow.ts";
import { type Findings, isAbsence } from "./findings.ts";

/** The replacement character of Node for the bytes of a name that are not valid UTF-8. */
const REPLACEMENT = "\uFFFD";

/** Opens the listing of one folder after another. Pushes the folders that it finds to `folders`. */
export function openListing(
  root: string,
  rules: Rules,
  follower: Follower,
  findings: Findings,
  folders: FolderPath[],
) {
  let rootFailure: string | undefined;
  let names: string[] = [];
  let links: string[] = [];
  let inside: FolderPath = "";
  let insideRules: FolderRules;

  /** Lists a folder: its files and links wait for `step`, the folders in it for their turn. */
  const list = (folder: FolderPath): void => {
    inside = folder;
    insideRules = rules.inFolder(folder);
    if (insideRules.unreadable !== undefined) {
      findings.unreadable(insideRules.unreadable);
      if (folder === "") rootFailure = listFailure(root);
      return;
    }
    try {
      let hasReplacement = false;
      for (const entry of readdirSync(follower.listed(folder), { withFileTypes: true })) {
        const { name } = entry;
        if (name.includes(REPLACEMENT)) hasReplacement = true;
        else if (entry.isFile()) names.push(name);
        else if (entry.isDirectory()) enter(childOf(folder, name), name);
        else if (entry.isSymbolicLink()) links.push(name);
      }
      if (hasReplacement) listMisnamed(folder);
      // The last one is taken first.
      names.sort().reverse();
    } catch (error) {
      names = [];
      links = [];
      findings.failed(folder, error);
      if (folder === "" && !isAbsence(error)) rootFailure = codeOf(error) ?? "UNKNOWN";
    }
  };

  const enter = (path: RelativePath, name: string): void => {
    if (!insideRules.folder(path, name).wanted) return;
    if (follower.enter(path)) folders.push(path);
  };

  /** Lists the names with U+FFFD again: they either contain that character or are not valid UTF-8. */
  const listMisnamed = (folder: FolderPath): void => {
    for (const entry of readdirSync(follower.listed(folder), { withFileTypes: true, encoding: "buffer" })) {
      const name = entry.name.toString("utf8");
      if (!name.includes(REPLACEMENT)) continue;
      const path = childOf(folder, name);
      const isValid = Buffer.from(name, "utf8").equals(entry.name);
      if (entry.isFile() && isValid) names.push(name);
      else if (entry.isSymbolicLink() && isValid) links.push(name);
      else if (entry.isFile() && insideRules.file(path, name).wanted) {
        findings.refuse(path, "its name is not valid UTF-8: rename it");
      } else if (entry.isDirectory() && isValid) enter(path, name);
      else if (entry.isDirectory() && insideRules.folder(path, name).wanted) {
        findings.refuse(path, "the folder's name is not valid UTF-8: rename it to sync what is in it");
      }
    }
  };

  const addListed = (name: string): void => {
    const path = childOf(inside, name);
    if (!insideRules.file(path, name).wanted) return;
    const stats = findings.stat(path);
    if (stats?.isFile() === true) findings.add(path, name, stats);
  };

  const addListedLink = (name: string): void => {
    const path = childOf(inside, name);
    const asFile = insideRules.file(path, name).wanted;
    const asFolder = insideRules.folder(path, name).wanted;
    if (!asFile && !asFolder) return;
    const stats = findings.stat(path);
    if (stats?.isSymbolicLink() === true && findings.addLink(path, name, stats, asFile, asFolder))
      folders.push(path);
  };

  return {
    list,
    /** Adds one file or link of the listed folder. Returns false when none is left. */
    step: (): boolean => {
      const name = names.pop();
      if (name !== undefined) {
        addListed(name);
        return true;
      }
      const link = links.pop();
      if (link !== undefined) addListedLink(link);
      return link !== undefined;
    },
    rootFailure: (): string | undefined => rootFailure,
  };
}

/** Why a folder cannot be listed. In a folder that cannot be entered, its ignore file is the first to fail. */
function listFailure(path: string): string | undefined {
  try {
    readdirSync(path);
    return undefined;
  } catch (error) {
    return isAbsence(error) ? undefined : (codeOf(error) ?? "UNKNOWN");
  }
}

function childOf(folder: FolderPath, name: string): RelativePath {
  return folder === "" ? name : `${folder}/${name}`;
}
