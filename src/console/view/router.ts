import { signal } from "@preact/signals";
import { addressOf, readRoute } from "./address.ts";
import type { Route } from "./address.ts";

/** The present address. */
export const route = signal<Route>(readRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = readRoute(location.hash);
});

/** Goes to an address. */
export function go(address: string): void {
  location.hash = address;
}

/** Goes to an address without a new entry in the history. */
export function replaceAddress(address: string): void {
  history.replaceState(null, "", address);
  route.value = readRoute(address);
}

/** Changes the query of the present address, as filters do while they are typed. */
export function refine(change: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = route.peek();
  replaceAddress(addressOf(path, { ...Object.fromEntries(query), ...change }));
}
