import { signal } from "@preact/signals";
import { addressOf, readPlace } from "./address.ts";
import type { Place } from "./address.ts";

/** The present address. */
export const place = signal<Place>(readPlace(location.hash));

addEventListener("hashchange", () => {
  place.value = readPlace(location.hash);
});

/** Goes to an address. */
export function go(address: string): void {
  location.hash = address;
}

/** Goes to an address without a new entry in the history. */
export function replaceAddress(address: string): void {
  history.replaceState(null, "", address);
  place.value = readPlace(address);
}

/** Changes the query of the present address, as filters do while they are typed. */
export function refine(change: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = place.peek();
  replaceAddress(addressOf(path, { ...Object.fromEntries(query), ...change }));
}
