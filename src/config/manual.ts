import { fileURLToPath } from "node:url";

/** The installed manual of the configuration, as an absolute path that can be opened from any folder. */
export const CONFIG_MANUAL = fileURLToPath(new URL("../../docs/CONFIG.md", import.meta.url));
