import { drawHistory } from "./draw.ts";
import type { History } from "./history.ts";
import { openRandom } from "./virtual/random.ts";
import { CALM_WORLDS } from "./worlds/calm.ts";
import { FOLDER_WORLDS } from "./worlds/folder.ts";
import { HOSTILE_WORLDS } from "./worlds/hostile.ts";
import { METADATA_WORLDS } from "./worlds/metadata.ts";
import { SERVICE_WORLDS } from "./worlds/service.ts";
import { SOURCE_WORLDS } from "./worlds/sources.ts";
import { STATUS_WORLDS } from "./worlds/status.ts";
import { MINUTE_MS, type UnkindWorld } from "./worlds/unkind-world.ts";

/** All unkind worlds. Each draws from a source of its own, so that another world leaves what it draws as it is. */
export const WORLDS: readonly UnkindWorld[] = [
  ...SERVICE_WORLDS,
  ...SOURCE_WORLDS,
  ...FOLDER_WORLDS,
  ...STATUS_WORLDS,
  ...METADATA_WORLDS,
  ...CALM_WORLDS,
  ...HOSTILE_WORLDS,
];

/**
 * Draws a history from a seed. Without `chosen` a history takes place in each world that passes with that world's share; with
 * it, in one or more of those that are named.
 */
export function drawIn(seed: number, chosen: readonly string[] | undefined): History {
  const choice = openRandom(`worlds ${seed}`);
  const certain = chosen === undefined || chosen.length === 0 ? undefined : choice.pick(chosen);
  const isIn = ({ name, share, passes }: UnkindWorld): boolean => {
    const random = openRandom(`in ${name} ${seed}`);
    if (chosen === undefined) return passes && random.chance(share);
    return name === certain || (chosen.includes(name) && random.chance(0.3));
  };
  const plain = drawHistory(seed);
  const endMs = plain.happenings.reduce((end, { atMs }) => Math.max(end, atMs), MINUTE_MS);
  const worlds = WORLDS.filter(isIn);
  const history = worlds.reduce(
    (before, { name, change }) => change(openRandom(`world ${name} ${seed}`), before, endMs),
    plain,
  );
  const happenings = history.happenings
    .map((each) => ({ ...each, atMs: Math.round(each.atMs) }))
    .sort((a, b) => a.atMs - b.atMs);
  return { ...history, worlds: worlds.map(({ name }) => name), happenings };
}

/** The worlds of a list of names; throws for a name that is none. */
export function worldsNamed(names: string): readonly string[] {
  if (names === "none") return [];
  if (names === "all") return WORLDS.map(({ name }) => name);
  const chosen = names.split(",");
  const unknown = chosen.find((each) => !WORLDS.some(({ name }) => name === each));
  if (unknown !== undefined) {
    throw new Error(`no world ${unknown}; there are ${WORLDS.map(({ name }) => name).join(", ")}`);
  }
  return chosen;
}
