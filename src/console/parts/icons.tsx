import type { JSX } from "preact";

const SHAPES = {
  overview: "M3 13h7V3H3zm11 8h7V11h-7zM3 21h7v-5H3zM14 3v5h7V3z",
  folder: "M3 6a1 1 0 0 1 1-1h5l2 2h9a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z",
  books: "M5 4h4v16H5zM9 4h4v16H9zM14 5l4-1 4 15-4 1z",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 21 21",
  chat: "M4 5h16v11H9l-5 4z",
  key: "M8 16a4 4 0 1 1 3.5-6H21v4h-2v2h-3v-2h-4.500A4 4 0 0 1 8 16z",
  check: "M5 12.500l4.500 4.500L19 7",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.500 2",
  alert: "M12 3 22 20H2zM12 10v4M12 17v.5",
  pause: "M8 5v14M16 5v14",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  plus: "M12 5v14M5 12h14",
  none: "M5 12h14",
} as const;

/** A sign beside words; alone it says nothing to a screen reader. */
export function Icon({ name, size = 16 }: { name: keyof typeof SHAPES; size?: number }): JSX.Element {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={SHAPES[name]} />
    </svg>
  );
}
