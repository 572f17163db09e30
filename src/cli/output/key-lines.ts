import type { KeyRecordAnswer } from "../../wire/key.ts";

/** A table of keys, one a line: id, beginning of the key, state, scopes, end, name. */
export function keyLines(keys: readonly KeyRecordAnswer[]): string {
  if (keys.length === 0) return "the account has no keys\n";
  return keys
    .map(({ _id, hint, state, scopes, name, expiresAt, revokedAt }) => {
      const beginning = hint === "" ? "" : `${hint}…`;
      const end = revokedAt ?? expiresAt ?? "never";
      const columns = [
        _id,
        beginning.padEnd(9),
        state.padEnd(7),
        scopes.join(",").padEnd(21),
        end.padEnd(24),
      ];
      return `${columns.join("  ")}  ${name.replaceAll(/\p{Cc}/gu, " ")}\n`;
    })
    .join("");
}
