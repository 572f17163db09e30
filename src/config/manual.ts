import { packagePath } from "../lib/package.ts";

/** The installed manual of the configuration, as an absolute path that can be opened from any folder. */
export const CONFIG_MANUAL = packagePath("docs/CONFIG.md");
