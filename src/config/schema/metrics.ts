import { z } from "zod";

/** Schema of `metrics` in the configuration: a host and a port. */
export const MetricsAddress = z
  .string()
  .transform((text, context) => {
    const url = URL.parse(`http://${text}`);
    // A URL leaves out the port 80 of its scheme.
    const port = Number(/:(\d{1,5})$/.exec(text)?.[1]);
    if (url !== null && url.href === `http://${url.host}/` && port >= 1 && port <= 65_535)
      return { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port };
    context.addIssue({ code: "custom", message: "expected a host and a port such as 127.0.0.1:9464" });
    return z.NEVER;
  })
  .describe(
    "Host and port to listen on for monitoring: `/metrics`, `/healthz` and `/readyz`. No key is required: use an address other than loopback only if everyone who reaches it may learn how many documents there are and how fast searches are. Default: none; the embedded service serves them on its port, also for the daemon in the same process.",
  );
