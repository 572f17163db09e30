import type { ComponentChildren, JSX } from "preact";
import { RequestError } from "../client/api.ts";
import { clock, duration } from "../view/format.ts";
import type { Loaded } from "../view/load.ts";
import { useNow } from "../view/load.ts";
import { Icon } from "./icons.tsx";

/** A message that stays: what happened, what it means, what to do. */
export function Notice(props: {
  readonly kind: "good" | "wait" | "bad";
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
}): JSX.Element {
  const { kind, title, children, action } = props;
  const icon = { good: "check", wait: "clock", bad: "alert" } as const;
  return (
    <div class={`notice ${kind}`} role={kind === "bad" ? "alert" : undefined}>
      <Icon name={icon[kind]} />
      <div>
        <div class="title">{title}</div>
        {children}
      </div>
      {action === undefined ? null : <div class="row actions">{action}</div>}
    </div>
  );
}

/** A failed request: its message, its remedy, when to try again, and its id. */
export function ErrorNotice({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: (() => void) | undefined;
}): JSX.Element {
  const now = useNow(1000);
  const known = error instanceof RequestError ? error : undefined;
  const leftMs = (known?.retryAtMs ?? 0) - now;
  return (
    <Notice
      kind="bad"
      title={error instanceof Error ? error.message : String(error)}
      action={
        retry === undefined ? undefined : (
          <button type="button" class="button small" disabled={leftMs > 0} onClick={retry}>
            {leftMs > 0 ? `Try again in ${duration(leftMs / 1000)}` : "Try again"}
          </button>
        )
      }
    >
      {known?.hint === undefined ? null : <p>{known.hint}</p>}
      {retry === undefined && leftMs > 0 ? <p>Possible again in {duration(leftMs / 1000)}.</p> : null}
      {known?.requestId === undefined ? null : (
        <p class="small muted">
          Request <code>{known.requestId}</code>
        </p>
      )}
    </Notice>
  );
}

/** Placeholders of the size of what is loading. */
export function Bones({ lines = 4 }: { readonly lines?: number }): JSX.Element {
  return (
    <div class="bones" role="status">
      <span class="hidden-visually" style={{ height: "1px" }}>
        Loading
      </span>
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} style={{ width: `${90 - ((at * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** Shows what was loaded; before that placeholders, and after a failure the last value with its time. */
export function Show<T>({
  loaded,
  lines,
  children,
}: {
  readonly loaded: Loaded<T>;
  readonly lines?: number;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { value, error, atMs, reload } = loaded;
  return (
    <>
      {error === undefined ? null : <ErrorNotice error={error} retry={reload} />}
      {error !== undefined && atMs !== undefined ? (
        <p class="small muted">What follows is as of {clock(atMs)}.</p>
      ) : null}
      {value === undefined ? (
        error === undefined ? (
          <Bones {...(lines !== undefined && { lines })} />
        ) : null
      ) : (
        children(value)
      )}
    </>
  );
}

/** Says that there is nothing, and what to do about it. */
export function Empty({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children === undefined ? null : <p>{children}</p>}
      {action === undefined ? null : <div class="row">{action}</div>}
    </div>
  );
}

/** A state in words, with a sign. */
export function State({
  kind,
  children,
}: {
  readonly kind: "good" | "wait" | "bad" | "none";
  readonly children: ComponentChildren;
}): JSX.Element {
  const icon = { good: "check", wait: "clock", bad: "alert", none: "none" } as const;
  return (
    <span class={`state ${kind}`}>
      <Icon name={icon[kind]} size={13} />
      {children}
    </span>
  );
}
