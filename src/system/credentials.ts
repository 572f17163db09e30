import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * The file that a service manager has put a secret into for this process alone (systemd.exec(5), `LoadCredential=`);
 * undefined where it was given none of that name. It is read by no other user, and gone when the unit stops.
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
