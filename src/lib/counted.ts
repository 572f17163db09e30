/** `20000` → `20,000` in any locale, because scripts read the output too. */
export function thousands(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 delete`, `2,000 deletes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${thousands(count)} ${count === 1 ? one : many}`;
}
