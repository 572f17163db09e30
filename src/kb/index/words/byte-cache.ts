/** A cache with a bound on its bytes, which evicts the least recently used entries. */
export interface ByteCache<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V, bytes: number): void;
}

/** Overhead of an entry: its key and its objects. */
const ENTRY_BYTES = 200;

export function makeByteCache<K, V>(bytesMax: number): ByteCache<K, V> {
  /** Least recently used first. */
  const entries = new Map<K, { readonly value: V; readonly bytes: number }>();
  let total = 0;
  const drop = (key: K): void => {
    total -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  };
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, bytes) {
      drop(key);
      entries.set(key, { value, bytes: bytes + ENTRY_BYTES });
      total += bytes + ENTRY_BYTES;
      for (const oldest of entries.keys()) {
        if (total <= bytesMax || entries.size === 1) break;
        drop(oldest);
      }
    },
  };
}
