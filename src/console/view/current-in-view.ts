import { useEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** Scrolls a row of links sideways, where it is wider than the window, until the link of the current page is in view. */
export function useCurrentInView<T extends HTMLElement>(current: string | undefined): RefObject<T | null> {
  const row = useRef<T>(null);
  useEffect(() => {
    const link = row.current?.querySelector("[aria-current]");
    if (row.current === null || link === null || link === undefined) return;
    const { left, width } = link.getBoundingClientRect();
    const view = row.current.getBoundingClientRect();
    // Not `scrollIntoView`, which scrolls the page too.
    row.current.scrollLeft += left + width / 2 - (view.left + view.width / 2);
  }, [current]);
  return row;
}
