import type { Sqlite } from "./open.ts";
import { statementsOf } from "./statements.ts";

/** Prepares the statements over named values. */
export function openMeta(db: Sqlite) {
  const { run, value } = statementsOf(db);
  const get = value<[name: string], string>("SELECT value FROM meta WHERE name = ?");
  return {
    get,
    number: (name: string): number | undefined => {
      const text = get(name);
      return text === undefined ? undefined : Number(text);
    },
    set: run<[name: string, value: string]>(
      "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ),
  };
}
