/** Standard output. */
export interface ProgressOutput {
  /** Writes text of any origin and escapes control characters. */
  write(text: string): void;
  /** Writes control sequences. The caller escapes text of other origins (`visible`). */
  draw(text: string): void;
  /** Shows a line below all other text, in place of the last one; an empty one removes it. For terminals. */
  bar(line: string): void;
  readonly isTTY: boolean;
  readonly columns: number;
}

/** Seconds in words: `11 s`, `4 min`, `2 h 5 min`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)} h${rest === 0 ? "" : ` ${rest} min`}`;
}

/** Formats local date and time sortably. */
export function localTime(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
