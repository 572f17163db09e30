import type { JSX } from "preact";
import { ErrorNotice, State } from "../parts/notice.tsx";
import { addressOf } from "../view/address.ts";
import { counted } from "../view/format.ts";
import { clearDone, retryItem, tray } from "./tray.ts";
import type { TrayItem } from "./tray.ts";

/** The documents that were added in this tab, each with its progress or its error. */
export function Tray(): JSX.Element | null {
  const items = tray.value;
  if (items.length === 0) return null;
  const done = items.filter(({ state }) => state === "done").length;
  return (
    <section class="card tray" aria-label="Added documents">
      <div class="row spread">
        <div role="status">
          <h2>
            {done === items.length
              ? `${counted(done, "document")} added`
              : `${done} of ${counted(items.length, "document")} added`}
          </h2>
        </div>
        {done === 0 ? null : (
          <button type="button" class="button small plain" onClick={clearDone}>
            Clear
          </button>
        )}
      </div>
      <ul>
        {items.map((item) => (
          <TrayRow key={item.key} item={item} />
        ))}
      </ul>
    </section>
  );
}

function TrayRow({ item }: { readonly item: TrayItem }): JSX.Element {
  const { key, document, state, part, error, id, warning } = item;
  return (
    <li>
      {id === undefined ? (
        <span class="clip">{document.title}</span>
      ) : (
        <a class="clip" href={addressOf(["documents", id])}>
          {document.title}
        </a>
      )}
      <TrayState state={state} part={part} />
      {state === "uploading" ? (
        <div class="bar" aria-hidden="true">
          <i style={{ width: `${part * 100}%` }} />
        </div>
      ) : null}
      {warning === undefined ? null : <span class="hint">{warning}</span>}
      {state === "failed" ? (
        <div class="problem">
          <ErrorNotice error={error} retry={() => retryItem(key)} />
        </div>
      ) : null}
    </li>
  );
}

function TrayState({ state, part }: Pick<TrayItem, "state" | "part">): JSX.Element {
  switch (state) {
    case "waiting":
      return <State kind="none">Waiting</State>;
    case "uploading":
      return <State kind="wait">Uploading {Math.round(part * 100)} %</State>;
    case "reading":
      return <State kind="wait">Reading</State>;
    case "done":
      return <State kind="good">Searchable</State>;
    case "failed":
      return <State kind="bad">Failed</State>;
  }
}
