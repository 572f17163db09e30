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

/** Schema of `notify` in the configuration. */
export const NotifySection = z.strictObject({
  command: z
    .array(z.string().max(4096))
    .min(1)
    .max(100)
    .refine(([file = ""]) => file !== "", { error: "expected the program first" })
    .optional()
    .describe(
      "Program with its arguments that is run when a person is needed, without a shell. It gets the notice as JSON on standard input, and its text in KBSYNC_TEXT.",
    ),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional()
    .describe("Address to which the same JSON is posted."),
  desktop: z
    .boolean()
    .optional()
    .describe(
      "Whether the notice is shown on the desktop, by `notify-send`. Default: true for a unit of a user, otherwise false.",
    ),
});
