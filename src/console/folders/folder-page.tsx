import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AuditReport } from "../../wire/daemon-audit.ts";
import type { LiveStatus, SourceStatus } from "../../wire/daemon-status.ts";
import { askDaemon } from "../client/daemon.ts";
import { besideWords, searchableWords } from "../../wire/file-state.ts";
import { counted, lastName } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Empty, ErrorNotice, Notice, Show } from "../parts/notice.tsx";
import { Words } from "../parts/words.tsx";
import { Page } from "../parts/page.tsx";
import { useCommand } from "./file-row.tsx";
import { addressOf } from "../view/address.ts";
import { route } from "../view/router.ts";
import { countsOf, FolderBar, FolderState, rateOf } from "./folder-cards.tsx";
import { ActivityTab } from "./activity-tab.tsx";
import { RemoveFolder } from "./remove-folder.tsx";
import { HeldTab, TrashTab } from "./file-tabs.tsx";
import { TroubledTab } from "./troubled-tab.tsx";

const EVERY_MS = 2000;
const TABS = ["activity", "waiting", "failed", "held", "skipped", "trash"] as const;
type Tab = (typeof TABS)[number];

/** One folder: its counts, its commands, and its files by their problems. */
export function FolderPage({ path }: { readonly path: string }): JSX.Element {
  const loaded = useLoad("folder", (signal) => askDaemon("status", {}, signal), EVERY_MS);
  return (
    <Page
      title={lastName(path)}
      intro={
        <>
          <a href={addressOf(["folders"])}>Folders</a> › <span class="path">{path}</span>
        </>
      }
    >
      <Show loaded={loaded}>
        {(status) => {
          const source = status.sources.find((each) => each.path === path);
          return source === undefined ? (
            <Empty title="This folder is not watched">
              It is not in the configuration of the running daemon.
            </Empty>
          ) : (
            <Folder source={source} status={status} reload={loaded.reload} />
          );
        }}
      </Show>
    </Page>
  );
}

function Folder({
  source,
  status,
  reload,
}: {
  readonly source: SourceStatus;
  readonly status: LiveStatus;
  readonly reload: () => void;
}): JSX.Element {
  const chosen = TABS.find((each) => each === route.value.query.get("tab")) ?? "activity";
  const { path, holdReason, remedy, degraded, unreadable, unreadablePaths } = source;
  return (
    <>
      <section class="card stack tight" aria-label="State">
        <div class="row spread">
          <FolderState source={source} />
          <Commands source={source} reload={reload} />
        </div>
        <FolderBar source={source} />
        <p>
          {countsOf(source)}
          {rateOf(status) === "" ? "" : ` · ${rateOf(status)}`}
        </p>
      </section>
      {holdReason === null ? null : (
        <Notice kind="bad" title={holdReason}>
          {remedy === null ? null : (
            <p>
              <Words of={remedy} />
            </p>
          )}
        </Notice>
      )}
      {unreadable === 0 ? null : (
        <Notice
          kind="bad"
          title={`${counted(unreadable, "path")} cannot be read, so their documents stay as they are`}
        >
          <ul class="path">
            {unreadablePaths.map((each) => (
              <li key={each}>{each === "" ? path : each}</li>
            ))}
          </ul>
        </Notice>
      )}
      {degraded === null ? null : <Notice kind="wait" title={degraded} />}
      <nav class="tabs" aria-label="Files of this folder">
        {TABS.map((tab) => (
          <a
            key={tab}
            href={addressOf(["folders"], { path, tab })}
            aria-current={tab === chosen ? "page" : undefined}
          >
            {tabLabel(tab, source)}
          </a>
        ))}
      </nav>
      <TabContent tab={chosen} source={source} reload={reload} />
    </>
  );
}

function tabLabel(tab: Tab, source: SourceStatus): string {
  const withCount = (label: string, value: number): string => (value === 0 ? label : `${label} (${value})`);
  switch (tab) {
    case "activity":
      return "Activity";
    case "waiting":
      return withCount("Waiting", source.waiting + source.reading);
    case "failed":
      return withCount("Failed", source.failed + source.deletesRefused);
    case "held":
      return withCount("Held deletes", source.held);
    case "skipped":
      return withCount("Skipped", source.skipped);
    case "trash":
      return "Trash";
  }
}

function TabContent({
  tab,
  source,
  reload,
}: {
  readonly tab: Tab;
  readonly source: SourceStatus;
  readonly reload: () => void;
}): JSX.Element {
  switch (tab) {
    case "activity":
      return <ActivityTab folder={source.path} />;
    case "waiting":
    case "failed":
    case "skipped":
      return <TroubledTab key={tab} source={source} state={tab} />;
    case "held":
      return <HeldTab source={source} reload={reload} />;
    case "trash":
      return <TrashTab folder={source.path} />;
  }
}

function Commands({
  source: { path, paused },
  reload,
}: {
  readonly source: SourceStatus;
  readonly reload: () => void;
}): JSX.Element {
  const [report, setReport] = useState<AuditReport | undefined>();
  const [isRemoving, setIsRemoving] = useState(false);
  const { error, isBusy, run } = useCommand(reload);
  const command = (label: string, work: () => Promise<unknown>, done?: string): JSX.Element => (
    <button
      type="button"
      class="button small"
      disabled={isBusy}
      onClick={() => void run(() => work().then(() => done))}
    >
      {label}
    </button>
  );
  const folder = { folder: path };
  return (
    <div class="row">
      {paused
        ? command(
            "Resume",
            () => askDaemon("pause", { ...folder, paused: false }),
            "The folder is watched again.",
          )
        : command(
            "Pause",
            () => askDaemon("pause", { ...folder, paused: true }),
            "Nothing is sent from this folder until you resume it.",
          )}
      {command("Check again", () => askDaemon("retry", { path }), "Every file is compared again.")}
      {command("Verify", async () => setReport(await askDaemon("verify", { ...folder, repair: false })))}
      <button type="button" class="button small" disabled={isBusy} onClick={() => setIsRemoving(true)}>
        Remove…
      </button>
      {error === undefined ? null : <ErrorNotice error={error} />}
      {isRemoving ? <RemoveFolder path={path} onClose={() => setIsRemoving(false)} /> : null}
      {report === undefined ? null : <Report report={report} onClose={() => setReport(undefined)} />}
    </div>
  );
}

function Report({
  report,
  onClose,
}: {
  readonly report: AuditReport;
  readonly onClose: () => void;
}): JSX.Element {
  const compared = report.sources.reduce((sum, { resources }) => sum + resources, 0);
  return (
    <Dialog
      title={
        report.agrees
          ? "Everything is as it should be"
          : report.left === 0
            ? `Nothing differs: ${[...report.sources.map(searchableWords), ...besideWords(report.sources)].join(", ")}`
            : `${counted(report.left, "difference")} found`
      }
      onClose={onClose}
    >
      <p>
        {counted(compared, "document")} of this folder compared with the service's own list.
        {report.foreign === 0
          ? ""
          : ` ${counted(report.foreign, "document")} there came from elsewhere, and stay.`}
      </p>
      {report.findings.length === 0 ? null : (
        <ul class="stack tight scroll-y">
          {report.findings.slice(0, 200).map(({ path, docId, what, title }) => (
            <li key={`${docId} ${path}`}>
              <strong>{path === "" ? title : path}</strong> <span class="muted">{what}</span>
            </li>
          ))}
        </ul>
      )}
      {report.left === 0 ? null : (
        <p class="hint">
          <code>kbsync verify --repair</code> puts right what others changed.
        </p>
      )}
      <div>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
