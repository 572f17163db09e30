import { z } from "zod";

/** Schema of `metrics` in the configuration. */
export const MetricsSection = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(255)
    .default("127.0.0.1")
    .describe(
      "Address to listen on for monitoring, if port is set. No key is required: use an address other than loopback only if everyone who reaches it may learn how many documents there are and how fast searches are.",
    ),
  port: z
    .int()
    .min(1)
    .max(65535)
    .optional()
    .describe(
      "Port of `/metrics`, `/healthz` and `/readyz`. Default: none; the embedded service serves them on its port, also for the daemon in the same process.",
    ),
});
