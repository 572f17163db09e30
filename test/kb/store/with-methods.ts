import type { Ports, Store } from "../../../src/kb/store/store.ts";

/** Returns the same store with some of its methods replaced. */
export function withMethods(
  store: Store,
  { records, queue, index }: { readonly [P in keyof Ports]?: Partial<Ports[P]> },
): Store {
  return {
    ...store,
    records: { ...store.records, ...records },
    queue: { ...store.queue, ...queue },
    index: { ...store.index, ...index },
  };
}
