import type { JSX } from "preact";
import type { LiveStatus, SourceStatus } from "../../wire/daemon-status.ts";
import { besideWords, countWords, searchableWords } from "../../wire/file-state.ts";
import { duration, lastName } from "../view/format.ts";
import { State } from "../parts/notice.tsx";
import { addressOf } from "../view/address.ts";

/** The watched folders, each with its state, its counts and its problems. */
export function FolderCards({ status }: { readonly status: LiveStatus }): JSX.Element {
  return (
    <ul class="folders">
      {status.sources.map((source) => (
        <li key={source.path} class="card stack tight">
          <div class="row spread">
            <h3>
              <a href={addressOf(["folders"], { path: source.path })}>{lastName(source.path)}</a>
            </h3>
            <FolderState source={source} />
          </div>
          <p class="path muted">{source.path}</p>
          <FolderBar source={source} />
          <p class="small">{countsOf(source)}</p>
        </li>
      ))}
    </ul>
  );
}

/** The state of a folder in words. */
export function FolderState({ source }: { readonly source: SourceStatus }): JSX.Element {
  if (source.halted) return <State kind="bad">Halted</State>;
  if (source.held > 0) return <State kind="bad">Needs you</State>;
  if (source.paused) return <State kind="none">Paused</State>;
  const { failed, deletesRefused, unreadable } = source;
  const bad = [...countWords({ failed }), ...besideWords([{ deletesRefused, unreadable }])];
  if (bad.length > 0) return <State kind="bad">{bad.join(", ")}</State>;
  if (!source.compared) return <State kind="wait">Scanning</State>;
  if (source.waiting > 0) return <State kind="wait">Waiting</State>;
  if (source.reading > 0) return <State kind="wait">Being read</State>;
  return <State kind="good">Searchable</State>;
}

/** How much of a folder is searchable. */
export function FolderBar({ source }: { readonly source: SourceStatus }): JSX.Element {
  const { searchable, files } = source;
  return (
    <div class="bar" aria-hidden="true">
      <i style={{ width: `${files === 0 ? 0 : (100 * searchable) / files}%` }} />
    </div>
  );
}

/** `7 of 8 files searchable, 1 waiting, 2 skipped`. */
export function countsOf(source: SourceStatus): string {
  return [searchableWords(source), ...besideWords([source])].join(", ");
}

/** `12 files a second, about 3 min left`; empty at rest. */
export function rateOf({ filesPerSecond, secondsLeft }: LiveStatus): string {
  const rate =
    filesPerSecond === null ? [] : [`${filesPerSecond.toFixed(filesPerSecond < 10 ? 1 : 0)} files a second`];
  const left = secondsLeft === null ? [] : [`about ${duration(secondsLeft)} left`];
  return [...rate, ...left].join(", ");
}
