import type { JSX } from "preact";
import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { askDaemon } from "../client/daemon.ts";
import { ago, clock } from "../view/format.ts";
import { useLoad, useNow } from "../view/load.ts";
import { Empty, Show, State } from "../parts/notice.tsx";
import { Words } from "../parts/words.tsx";
import { WhyButton } from "./why-dialog.tsx";

const EVERY_MS = 2000;
const SHOWN = 100;

/** What the daemon did with the files of a folder, newest first. */
export function ActivityTab({ folder }: { readonly folder: string }): JSX.Element {
  const loaded = useLoad(
    `activity ${folder}`,
    async (signal) => (await askDaemon("log", { path: folder, limit: SHOWN }, signal)).activities,
    EVERY_MS,
  );
  const now = useNow(15_000);
  return (
    <Show loaded={loaded} lines={6}>
      {(activities) =>
        activities.length === 0 ? (
          <Empty title="Nothing has happened yet">Save a file in this folder, and it appears here.</Empty>
        ) : (
          <>
            <p class="small muted">
              The last {activities.length} changes, as of {clock(loaded.atMs ?? now)}.
            </p>
            <ol class="card flush files" aria-label="Activity">
              {activities.toReversed().map((activity) => (
                <li key={`${activity.atMs} ${activity.action} ${activity.path}`}>
                  <div>
                    <span class="path">
                      {activity.from === undefined ? "" : `${activity.from} → `}
                      {activity.path}
                    </span>
                    {activity.message === undefined ? null : (
                      <p class="small muted">
                        <Words of={activity.message} />
                      </p>
                    )}
                  </div>
                  <Outcome activity={activity} />
                  <span class="small muted numeric">{ago(activity.atMs, now)}</span>
                  <WhyButton path={`${folder}/${activity.path}`} />
                </li>
              ))}
            </ol>
          </>
        )
      }
    </Show>
  );
}

const ACTIONS: Readonly<Record<DaemonActivity["action"], string>> = {
  create: "Added",
  update: "Updated",
  retitle: "Renamed in the knowledge base",
  move: "Moved",
  replace: "Replaced",
  delete: "Deleted",
  touch: "Unchanged",
  read: "Read",
  adopt: "Found there already",
  audit: "Repaired",
  discard: "Cleaned up",
};

function Outcome({ activity: { action, outcome } }: { readonly activity: DaemonActivity }): JSX.Element {
  switch (outcome) {
    case "done":
      return <State kind="good">{ACTIONS[action]}</State>;
    case "refused":
      return <State kind="bad">Failed</State>;
    case "skipped":
      return <State kind="none">Skipped</State>;
    case "parked":
      return <State kind="wait">Tried again later</State>;
  }
}
