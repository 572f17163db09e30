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
  keyOf,
  rowPx,
  columns,
  head,
  row,
}: {
  readonly label: string;
  readonly items: readonly T[];
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
  const at = Math.min(Math.floor(top / rowPx), Math.max(0, items.length - visible));
  const first = Math.max(0, at - BEYOND);
  const last = Math.min(items.length, at + visible + 1 + BEYOND);
  return (
    <div role="table" aria-label={label} aria-rowcount={items.length + 1} class="rows">
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
        <div style={{ height: `${(items.length - last) * rowPx}px` }} role="presentation" />
      </div>
    </div>
  );
}
