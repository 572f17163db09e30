import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Rows above and below the visible ones, so that scrolling shows no gap. */
const BEYOND = 8;

/**
 * A long table of which only the visible rows exist. Every row has the same height. `head` is a row of the same table, and `row`
 * returns the cells of one.
 */
export function Rows<T>({
  label,
  items,
  count = items.length,
  onNeed,
  keyOf,
  rowPx,
  columns,
  head,
  row,
}: {
  readonly label: string;
  readonly items: readonly T[];
  /** Rows of the table, if not all are in `items` yet. */
  readonly count?: number;
  /** Called with the number of rows that should be there, when one that is not comes into view. */
  readonly onNeed?: (rows: number) => void;
  readonly keyOf: (item: T) => string;
  readonly rowPx: number;
  /** Class that lays out the cells of a row. */
  readonly columns: string;
  readonly head: ComponentChildren;
  readonly row: (item: T) => ComponentChildren;
}): JSX.Element {
  const view = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const element = view.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const visible = Math.ceil(height / rowPx);
  // A filter may leave fewer rows than were scrolled over.
  const at = Math.min(Math.floor(top / rowPx), Math.max(0, count - visible));
  const first = Math.max(0, at - BEYOND);
  const last = Math.min(count, at + visible + 1 + BEYOND);
  const loaded = Math.min(last, items.length);
  useEffect(() => {
    if (last > items.length) onNeed?.(last);
  });
  return (
    <div role="table" aria-label={label} aria-rowcount={count + 1} class="rows">
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} class={`rows-head ${columns}`}>
          {head}
        </div>
      </div>
      <div
        role="rowgroup"
        class="rows-view"
        ref={view}
        // It scrolls by the keyboard.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div style={{ height: `${first * rowPx}px` }} role="presentation" />
        {items.slice(first, last).map((item, offset) => (
          <div
            role="row"
            aria-rowindex={first + offset + 2}
            key={keyOf(item)}
            class={`rows-row ${columns}`}
            style={{ height: `${rowPx}px` }}
          >
            {row(item)}
          </div>
        ))}
        {Array.from({ length: last - Math.max(first, loaded) }, (_, offset) => (
          <div
            role="row"
            aria-rowindex={Math.max(first, loaded) + offset + 2}
            key={`row ${Math.max(first, loaded) + offset}`}
            class={`rows-row ${columns}`}
            style={{ height: `${rowPx}px` }}
          >
            <span role="cell" />
            <span role="cell" class="small muted">
              Loading
            </span>
          </div>
        ))}
        <div style={{ height: `${(count - last) * rowPx}px` }} role="presentation" />
      </div>
    </div>
  );
}
