import type { Logger } from "pino";
import type { NotifyConfig } from "../../config/schema.ts";
import { messageOf } from "../../lib/failure.ts";
import type { DaemonStatus } from "../../sync/daemon.ts";
import { programVersion } from "../output/version.ts";
import { type Need, needsOf, type Notice } from "./needs.ts";
import { notifyDesktop, postNotice, runCommand } from "./channels.ts";

/** Notifies a person of what waits for them. */
export interface Notifier {
  /** Uses this configuration from now on. */
  use(config: NotifyConfig): void;
  stop(): void;
}

export interface NotifierOptions {
  readonly status: () => Pick<DaemonStatus, "service" | "sources">;
  readonly log: Pick<Logger, "warn">;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  /** Sends a notice over a channel. Default: really. */
  readonly send?: (channel: Channel, notice: Notice) => Promise<void>;
  readonly checkMs?: number;
}

/** The way to send a notice. */
export type Channel =
  | { readonly kind: "command"; readonly command: readonly string[] }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "desktop" };

/** Interval at which the status is checked. */
const CHECK_MS = 5000;
/** A problem that is over by the second check needs no person. */
const CHECKS_MIN = 2;

/**
 * Starts notifying. Reports each need once, after two checks in a row have found it, and again only after it was over. Needs
 * that arise together make one notice. A failing channel is logged, and used again for the next notice.
 */
export function startNotifier(options: NotifierOptions): Notifier {
  const { status, log, env, hostname, checkMs = CHECK_MS } = options;
  const send = options.send ?? ((channel, notice) => sendTo(channel, notice, env));
  let channels: readonly Channel[] = [];
  /** How many checks in a row have seen a need. */
  let seen = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();

  const notify = (needs: readonly Need[]): void => {
    const notice = { text: textOf(needs), host: hostname, version: programVersion(), needs };
    for (const channel of channels)
      sending = sending
        .then(() => send(channel, notice))
        .catch((error: unknown) => log.warn(`notify.${channel.kind} failed: ${messageOf(error)}`));
  };
  const check = (): void => {
    const needs = needsOf(status());
    seen = new Map(needs.map(({ key }) => [key, (seen.get(key) ?? 0) + 1]));
    const fresh = needs.filter(({ key }) => seen.get(key) === CHECKS_MIN);
    if (fresh.length > 0) notify(fresh);
  };
  return {
    use: (config) => {
      channels = channelsOf(config, env);
      clearInterval(timer);
      if (channels.length > 0) timer = setInterval(check, checkMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

/** A unit of a user's own service manager can reach the desktop of that user. */
function channelsOf(
  { command, url, desktop }: NotifyConfig,
  env: Readonly<Record<string, string | undefined>>,
): readonly Channel[] {
  const isUserUnit = env["INVOCATION_ID"] !== undefined && env["DBUS_SESSION_BUS_ADDRESS"] !== undefined;
  return [
    ...(command === undefined ? [] : [{ kind: "command", command } as const]),
    ...(url === undefined ? [] : [{ kind: "url", url } as const]),
    ...((desktop ?? isUserUnit) ? [{ kind: "desktop" } as const] : []),
  ];
}

function sendTo(
  channel: Channel,
  notice: Notice,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  switch (channel.kind) {
    case "command":
      return runCommand(channel.command, notice, env);
    case "url":
      return postNotice(channel.url, notice);
    case "desktop":
      return notifyDesktop(notice, env);
  }
}

function textOf(needs: readonly Need[]): string {
  return [
    "kbsync needs you:",
    ...needs.map(({ text }) => `- ${text}`),
    "`kbsync status` has the details.",
  ].join("\n");
}
