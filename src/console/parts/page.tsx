import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A page: its title, which gets the focus when a person goes there, and what it is for. */
export function Page({
  title,
  intro,
  actions,
  width = "",
  children,
}: {
  readonly title: string;
  readonly intro?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly width?: "" | "narrow" | "wide";
  readonly children: ComponentChildren;
}): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · kbsync`;
  }, [title]);
  useEffect(() => {
    // The first page leaves the focus where browsers put it.
    if (isLater) heading.current?.focus();
    isLater = true;
  }, []);
  return (
    <div class={`page ${width}`}>
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {intro === undefined ? null : <p>{intro}</p>}
        </div>
        {actions === undefined ? null : <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

let isLater = false;
