import type { DaemonStatus } from "../../sync/daemon.ts";
import { counted } from "../output/progress.ts";

/** Something that waits for a person. */
export interface Need {
  readonly kind: "halted" | "held" | "failed" | "unreadable" | "key_refused";
  /** Identifies it: its kind and the folder. */
  readonly key: string;
  /** One line for a person. */
  readonly text: string;
  /** Folder of the source; undefined: it concerns the service. */
  readonly folder?: string;
}

/** The notification, as JSON: a command gets it on standard input, an address as the body of a POST. */
export interface Notice {
  /** All needs in a few lines. */
  readonly text: string;
  readonly host: string;
  readonly version: string;
  readonly needs: readonly Need[];
}

/** Returns what waits for a person according to the status of the daemon. Pure. */
export function needsOf({ service, sources }: Pick<DaemonStatus, "service" | "sources">): readonly Need[] {
  const needs: Need[] = [];
  if (service.kind === "key_refused")
    needs.push({
      kind: "key_refused",
      key: "key_refused",
      text: `the service refuses the key: ${service.reason}`,
    });
  for (const { path: folder, halted, held, failed, unreadable, holdReason } of sources) {
    const add = (kind: Need["kind"], words: string): void => {
      needs.push({ kind, key: `${kind} ${folder}`, text: `${folder}: ${words}`, folder });
    };
    const reason = holdReason === null ? "" : `: ${holdReason}`;
    if (halted) add("halted", `halted, nothing is sent${reason}`);
    else if (held > 0) add("held", `${counted(held, "delete")} held until you approve${reason}`);
    if (failed > 0) add("failed", `${counted(failed, "file")} failed`);
    if (unreadable > 0) add("unreadable", `${counted(unreadable, "path")} cannot be read`);
  }
  return needs;
}
