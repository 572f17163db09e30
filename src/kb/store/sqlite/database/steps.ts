import type { Result, Statement, Steps } from "../../sql/steps.ts";
import type { Connection } from "./connection.ts";

/** Returns a runner of steps on a connection, inside a transaction of the caller. Statements are prepared once. */
export function prepareSteps(db: Connection): <T>(steps: Steps<T>) => T {
  const prepared = new Map<string, ReturnType<typeof prepare>>();
  const prepare = (text: string) => db.prepare<[object]>(text);
  const runOne = ({ text, parameters, returns }: Statement): Result => {
    let statement = prepared.get(text);
    if (statement === undefined) prepared.set(text, (statement = prepare(text)));
    const bound = boundOf(parameters);
    return returns === "rows" ? statement.all(bound) : statement.run(bound).changes;
  };
  return (steps) => {
    let next = steps.next([]);
    while (next.done !== true) next = steps.next(next.value.map(runOne));
    return next.value;
  };
}

/** SQLite has no booleans. */
function boundOf(parameters: Statement["parameters"]): object {
  const entries = Object.entries(parameters);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "boolean" ? Number(value) : value]),
  );
}
