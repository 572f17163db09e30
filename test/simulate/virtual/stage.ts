import type { Clock, Owner } from "./clock.ts";
import type { Random } from "./random.ts";
import type { Disk } from "../world/disk.ts";

/** A process of the daemon, from its start to its end or crash. */
export interface SimulatedProcess extends Owner {
  readonly number: number;
  /** Databases and files of the real disk that it opened and has not closed. */
  readonly handles: Set<{ close(): void }>;
  /** Called before and after each effect; throws when the process is to die there. */
  effect(name: string): void;
  /** The write-ahead log of the ledger was flushed to disk, up to this size. */
  flushed(log: { readonly head: string; readonly sizeBytes: number }): void;
}

/** What the replaced modules and globals work on: the simulation that is running. There is one at a time. */
export interface Stage {
  readonly clock: Clock;
  /** Missing while it is being made, which already takes the time from the clock. */
  disk: Disk | undefined;
  /** Ids, keys and the daemon's own chance. */
  readonly random: Random;
  process: SimulatedProcess;
}

let current: Stage | undefined;

/** Puts a simulation on the stage. */
export function enterStage(stage: Stage): void {
  current = stage;
}

/** The simulation that is running. */
export function onStage(): Stage {
  if (current === undefined) throw new Error("no simulation is running");
  return current;
}

/** Its disk. */
export function diskOnStage(): Disk {
  const { disk } = onStage();
  if (disk === undefined) throw new Error("the simulation has no disk yet");
  return disk;
}
