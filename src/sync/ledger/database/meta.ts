import type { Sqlite } from "./open.ts";

/** Prepares the statements over named values. */
export function openMeta(db: Sqlite) {
  const get = db.prepare<[string], string>("SELECT value FROM meta WHERE name = ?").pluck();
  const set = db.prepare(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  );
  const remove = db.prepare("DELETE FROM meta WHERE name = ?");
  return {
    get: (name: string): string | undefined => get.get(name),
    number: (name: string): number | undefined => {
      const text = get.get(name);
      return text === undefined ? undefined : Number(text);
    },
    set: (name: string, value: string): void => void set.run(name, value),
    remove: (name: string): void => void remove.run(name),
  };
}
