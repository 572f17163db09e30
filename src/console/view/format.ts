const COUNT = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", hour12: false });
const UTC_DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

/** 12431 → `12,431`. */
export function count(value: number): string {
  return COUNT.format(value);
}

/** `1 document`, `12,431 documents`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** 1536 → `1.5 kB`. Units of 1000. */
export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [shown, at] = [value, 0];
  while (shown >= 1000 && at < units.length - 1) [shown, at] = [shown / 1000, at + 1];
  return `${at === 0 || shown >= 100 ? Math.round(shown) : shown.toFixed(1)} ${units[at]}`;
}

/** `14:02`. */
export function clock(ms: number): string {
  return TIME.format(ms);
}

/** `Nov 21, 2026, 14:02`. */
export function moment(ms: number): string {
  return DAY.format(ms);
}

/** `Nov 21, 2026`, the day of UTC. */
export function dayOf(ms: number): string {
  return UTC_DAY.format(ms);
}

/** How long ago: `just now`, `5 min ago`, `3 h ago`, then the day. */
export function ago(ms: number, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - ms) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return moment(ms);
}

/** A duration: `8 s`, `5 min`, `3 h 20 min`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)} h${rest === 0 ? "" : ` ${rest} min`}`;
}

/** The last name of a path. */
export function lastName(path: string): string {
  return path.split("/").findLast((name) => name !== "") ?? path;
}
