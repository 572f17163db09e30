import type { FakeResource } from "../fakes/knowledge-service.ts";
import type { Chance } from "./chance.ts";

/** What the lists of a service show, which is not what it holds. */
export interface ListView {
  /** A resource was made, changed or deleted. */
  note(resource: Readonly<FakeResource>): void;
  /** What a list that is asked for now shows. */
  show(): readonly FakeResource[];
  /** Lists lag from now on, and nothing else is wrong with them. */
  calm(): void;
}

export interface ListViewOptions {
  /** Each change becomes visible after a delay of its own, up to this. */
  readonly lagMs: number;
  /** Share of lists that are wrong in another way: short, in another order, or old. */
  readonly share: number;
}

interface Version {
  readonly atMs: number;
  readonly visibleMs: number;
  readonly resource: Readonly<FakeResource>;
}

/** How old an old list is. */
const STALE_MS = 10_000;

/** Opens the view of a service that is empty. */
export function openListView(chance: Chance, { lagMs, share }: ListViewOptions): ListView {
  const versions = new Map<string, Version[]>();
  let isCalm = false;
  const asOf = (nowMs: number): readonly FakeResource[] =>
    [...versions.values()].flatMap(
      (each) => each.findLast(({ visibleMs }) => visibleMs <= nowMs)?.resource ?? [],
    );
  return {
    note: (resource) => {
      const before = versions.get(resource._id) ?? [];
      const atMs = Date.now();
      versions.set(resource._id, [
        ...before,
        { atMs, visibleMs: atMs + chance.next() * lagMs, resource: { ...resource } },
      ]);
    },
    show: () => {
      const nowMs = Date.now();
      const lagging = asOf(nowMs);
      if (isCalm || !chance.happens(share)) return lagging;
      const kind = chance.below(4);
      if (kind === 0) return lagging.filter(() => chance.happens(0.5));
      if (kind === 1) return lagging.slice(0, Math.floor(lagging.length / 2));
      if (kind === 2) return lagging.toReversed();
      return asOf(nowMs - STALE_MS);
    },
    calm: () => {
      isCalm = true;
    },
  };
}
