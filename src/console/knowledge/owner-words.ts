import { me } from "../client/session.ts";

/** Words for an owner: a document without one belongs to the account itself. */
export function ownerWords(ownerId: string): string {
  return ownerId === me.value?.accountId ? "No owner" : ownerId;
}
