import type { JSX } from "preact";
import type { Receipt } from "../../wire/receipt.ts";
import { State } from "../parts/notice.tsx";
import { counted } from "../view/format.ts";

/** How fresh an answer is: whether anything is known to be missing in what was searched, and what. */
export function Freshness({ receipt }: { readonly receipt: Receipt }): JSX.Element {
  const missing = missingOf(receipt);
  return (
    <p class="small">
      {missing.length === 0 ? (
        <State kind="good">Nothing is known to be missing</State>
      ) : (
        <>
          <State kind="wait">Not complete</State> {missing.join(", ")}.
        </>
      )}
    </p>
  );
}

/** What is missing in an answer, each in some words. Pure. */
function missingOf({ documents, folders, current }: Receipt): readonly string[] {
  const sum = (part: (folder: Receipt["folders"][number]) => number): number =>
    folders.reduce((total, folder) => total + part(folder), 0);
  const counts: readonly (readonly [number, string])[] = [
    [documents?.waiting ?? 0, "waiting"],
    [documents?.failed ?? 0, "failed"],
    [sum(({ failed }) => failed), "not sent"],
    [sum(({ pending }) => pending), "still to be sent"],
    [sum(({ unreadable }) => unreadable), "unreadable"],
  ];
  const units = ["document", "document", "file", "file", "file"];
  const words = counts.flatMap(([count, state], at) =>
    count === 0 ? [] : `${counted(count, units[at] ?? "file")} ${state}`,
  );
  const chunks = documents?.withoutVectors ?? 0;
  if (chunks > 0) words.push(`${counted(chunks, "chunk")} not found by meaning yet`);
  for (const { folder, noticing } of folders)
    if (noticing === "paused" || noticing === "halted" || noticing === "stopped")
      words.push(`${folder} is ${noticing}`);
  return words.length === 0 && !current ? ["changes of a folder may not be noticed yet"] : words;
}
