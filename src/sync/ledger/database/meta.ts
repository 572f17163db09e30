import type { Sqlite } from "./open.ts";

/** The ledger's named values. Changes are plain statements: run them inside a group commit. */
export interface Meta {
  get(name: string): string | undefined;
  number(name: string): number | undefined;
  set(name: string, value: string): void;
  remove(name: string): void;
}

/** Prepares the statements over named values. */
export function openMeta(db: Sqlite): Meta {
  const get = db.prepare<[string], string>("SELECT value FROM meta WHERE name = ?").pluck();
  const set = db.prepare(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  );
  const remove = db.prepare("DELETE FROM meta WHERE name = ?");
  return {
    get: (name) => get.get(name),
    number: (name) => {
      const text = get.get(name);
      return text === undefined ? undefined : Number(text);
    },
    set: (name, value) => void set.run(name, value),
    remove: (name) => void remove.run(name),
  };
}
