import { vi } from "vitest";
import { ACCESS_KEY } from "./s3-server.ts";

/** Sets what the client of buckets reads by itself. `vi.unstubAllEnvs` undoes it. */
export function stubCredentials(): void {
  vi.stubEnv("AWS_ACCESS_KEY_ID", ACCESS_KEY.id);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", ACCESS_KEY.secret);
  vi.stubEnv("AWS_CONFIG_FILE", "/nowhere");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
}
