import { z } from "zod";
import { isExposed, isLoopback } from "../lib/loopback.ts";
import { EmbeddedService, HostedService } from "./schema/service.ts";
import { SourceEntry } from "./schema/source.ts";
import { SyncSection } from "./schema/sync.ts";
import { KbSection } from "./schema/kb.ts";

/** Schema of `metrics` in the configuration: a host and a port. */
const MetricsAddress = z
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

/** The configuration file, with the defaults. */
export const ConfigFile = z
  .strictObject({
    $schema: z.string().optional(),
    service: z.union([EmbeddedService, HostedService]).prefault({}),
    stateDir: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Folder for the key, the ledger and the embedded service's data; relative to the configuration file. Default: $STATE_DIRECTORY, else $XDG_STATE_HOME/kbsync, else ~/.local/state/kbsync.",
      ),
    sources: z.array(SourceEntry).max(1000).default([]),
    sync: SyncSection.prefault({}),
    kb: KbSection.prefault({}),
    metrics: MetricsAddress.optional(),
  })
  .superRefine(({ service }, problems) => {
    if ("apiUrl" in service || !isExposed(service)) return;
    const { host, publicUrl } = service;
    const missing = (path: string[], message: string): void =>
      problems.addIssue({ code: "custom", path, message, input: undefined });
    if (publicUrl === undefined) {
      missing(
        ["service", "publicUrl"],
        `expected the address by which clients reach the service, because service.host is ${host}`,
      );
    }
    // Every other route always requires a key. For this one a person has to decide.
    if (service.requireKey === undefined) {
      const reason = isLoopback(host) ? `service.publicUrl is ${publicUrl}` : `service.host is ${host}`;
      missing(
        ["service", "requireKey"],
        `expected true (uploaded files are served to keys of their account) or false (to anyone with the address), because ${reason}`,
      );
    }
  });
export type ConfigFile = z.infer<typeof ConfigFile>;
export type SourceConfig = ConfigFile["sources"][number];
export type KbConfig = ConfigFile["kb"];
export type ServiceConfig = ConfigFile["service"];
