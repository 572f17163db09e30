import type { KeyRecordAnswer } from "../../wire/key.ts";
import { visibleLine } from "./visible.ts";

/** Two lines per key: id and name; then state, beginning and scopes of the key. */
export function keyLines(keys: readonly KeyRecordAnswer[]): string {
  if (keys.length === 0) return "the account has no keys\n";
  return keys
    .map(({ _id, hint, state, scopes, name, expiresAt, revokedAt }) => {
      const end = revokedAt ?? expiresAt;
      const when = end === null ? ", never expires" : ` ${state === "valid" ? "until" : "since"} ${end}`;
      const beginning = hint === "" ? "" : `${hint}…; `;
      return `${_id}  ${visibleLine(name)}\n  ${state}${when}; ${beginning}${scopes.join(", ")}\n`;
    })
    .join("");
}
