import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildPdf, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import type { Chance } from "./chance.ts";
import { type Ground, RETITLED } from "./ground.ts";

const FOLDERS = ["notes", "notes/deep", "papers", RETITLED];
/** Fewer are left alone, so that no brake against mass deletion is meant. */
const FILES_MIN = 15;

/** Fills an empty folder with texts, some of them equal, and PDFs. */
export function fill(ground: Ground, chance: Chance, files: number): void {
  while (filesOf(ground).length < files) create(ground, chance);
}

/** Does one thing to the folder, or to the configuration, as a person might. */
export function change(ground: Ground, chance: Chance): void {
  const files = filesOf(ground);
  const any = (): string => chance.pick(files);
  const roll = chance.below(100);
  if (files.length < FILES_MIN || roll < 30) create(ground, chance);
  else if (roll < 55) write(ground, any(), chance);
  else if (roll < 72) move(ground, any(), nameOf(chance, any().endsWith(".pdf")));
  else if (roll < 78) moveFolder(ground, chance);
  else if (roll < 84) swap(ground, any(), any());
  else if (roll < 94) rmSync(join(ground.root, any()));
  else if (roll < 95) ground.configure({ chunkChars: chance.pick([300, 600, 1000]) });
  else ground.configure({ word: chance.pick(["from", "of", "about"]) });
}

function create(ground: Ground, chance: Chance): void {
  write(ground, nameOf(chance, chance.happens(0.1)), chance);
}

/** What the file is called says nothing of what it holds: some texts are in many files. */
function write(ground: Ground, path: string, chance: Chance): void {
  if (path.endsWith(".pdf")) ground.write(path, buildPdf([textPage([`page ${chance.below(1e9)}`])]));
  else if (chance.happens(0.2)) ground.write(path, "the same words in many files");
  else ground.write(path, `text ${chance.below(1e9)}\n`.repeat(1 + chance.below(60)));
}

function nameOf(chance: Chance, isPdf: boolean): string {
  return `${chance.pick(FOLDERS)}/file-${chance.below(500)}.${isPdf ? "pdf" : "txt"}`;
}

function filesOf({ root }: Ground): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(root.length + 1));
}

function move({ root }: Ground, from: string, to: string): void {
  if (from.endsWith(".pdf") !== to.endsWith(".pdf")) return;
  mkdirSync(dirname(join(root, to)), { recursive: true });
  renameSync(join(root, from), join(root, to));
}

function moveFolder({ root }: Ground, chance: Chance): void {
  const from = join(root, "notes/deep");
  const to = join(root, `papers/moved-${chance.below(20)}`);
  if (!existsSync(from) || existsSync(to)) return;
  mkdirSync(dirname(to), { recursive: true });
  renameSync(from, to);
}

function swap(ground: Ground, a: string, b: string): void {
  if (a === b || a.endsWith(".pdf") !== b.endsWith(".pdf")) return;
  const { root } = ground;
  const between = join(dirname(root), "between");
  renameSync(join(root, a), between);
  renameSync(join(root, b), join(root, a));
  renameSync(between, join(root, b));
}
