import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the file that holds a secret which the service manager passed to this process (systemd.exec(5),
 * `LoadCredential=`), or undefined without such a secret. No other user can read it; it vanishes when the unit stops.
 */
export function credentialFile(
  env: Readonly<Record<string, string | undefined>>,
  id: string,
): string | undefined {
  const folder = env["CREDENTIALS_DIRECTORY"] ?? "";
  if (folder === "") return undefined;
  const file = join(folder, id);
  return existsSync(file) ? file : undefined;
}
