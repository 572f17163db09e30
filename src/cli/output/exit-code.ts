import type { SourceStatus } from "../../wire/daemon-status.ts";
import { codeOf } from "../../lib/failure.ts";

/** The meaning of every exit status. */
export const EXIT = {
  done: 0,
  /** Some files failed, or wait for a later pass; the rest is searchable. */
  filesFailed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  /** The service cannot be reached, or refuses the key. */
  service: 3,
  /** Deletes are held until a person agrees, or a folder is missing or another one. */
  held: 4,
  /** A defect of kbsync (sysexits' EX_SOFTWARE). */
  defect: 70,
  /** No space is left on the disk (sysexits' EX_IOERR). Unlike with a wrong configuration, a later start may succeed. */
  diskFull: 74,
  /** A temporary obstacle (sysexits' EX_TEMPFAIL); units restart the program. */
  passing: 75,
  /** The wait timed out (the status of timeout(1)). */
  timeout: 124,
  /** Interrupted by Ctrl-C or SIGTERM, as a shell reports it: 128 plus the number of SIGINT. */
  stopped: 130,
} as const;

/** Meaning of each exit status, in the order of the manual. */
export const EXIT_WORDS: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, "done"],
  [EXIT.filesFailed, "some files failed or wait for another try"],
  [EXIT.usage, "wrong usage, configuration or state folder"],
  [EXIT.service, "the service is unreachable or refuses, or the daemon does not answer"],
  [EXIT.held, "deletes are held, or a folder is missing or replaced"],
  [EXIT.defect, "a defect in kbsync"],
  [EXIT.diskFull, "the disk is full"],
  [
    EXIT.passing,
    "a temporary obstacle: state folder or address in use, address missing, a database that does not answer, or a failing disk",
  ],
  [EXIT.timeout, "wait timed out"],
  [EXIT.stopped, "stopped by a signal, such as Ctrl-C"],
];

const BY_CODE: Readonly<Record<string, number>> = {
  usage: EXIT.usage,
  config_invalid: EXIT.usage,
  config_not_found: EXIT.usage,
  config_unreadable: EXIT.usage,
  state_unusable: EXIT.usage,
  // Another process will end; one that was just killed may still hold the lock.
  state_locked: EXIT.passing,
  ledger_newer: EXIT.usage,
  ledger_older: EXIT.usage,
  ledger_damaged: EXIT.usage,
  ledger_foreign: EXIT.usage,
  ledger_unusable: EXIT.usage,
  ledger_unreachable: EXIT.passing,
  ledger_other_service: EXIT.usage,
  store_damaged: EXIT.usage,
  store_foreign: EXIT.usage,
  store_newer: EXIT.usage,
  store_older: EXIT.usage,
  store_unfit: EXIT.usage,
  store_unreachable: EXIT.passing,
  // A database that does not answer at present.
  store_busy: EXIT.passing,
  store_failed: EXIT.service,
  address_refused: EXIT.usage,
  address_in_use: EXIT.passing,
  address_missing: EXIT.passing,
  source_unusable: EXIT.usage,
  source_overlap: EXIT.usage,
  source_id_shared: EXIT.usage,
  not_kept: EXIT.filesFailed,
  source_missing: EXIT.held,
  source_replaced: EXIT.held,
  no_systemd: EXIT.usage,
  not_permitted: EXIT.usage,
  path_unseen: EXIT.usage,
  unit_foreign: EXIT.usage,
  unit_missing: EXIT.usage,
  unit_unusable: EXIT.usage,
  unit_failed: EXIT.service,
  unit_slow: EXIT.service,
  unit_stopped: EXIT.stopped,
  datagram_unavailable: EXIT.usage,
  disk_full: EXIT.diskFull,
  // A write elsewhere failed: the cause is the disk, not a defect.
  SQLITE_FULL: EXIT.diskFull,
  ENOSPC: EXIT.diskFull,
  EDQUOT: EXIT.diskFull,
  instance_unclear: EXIT.usage,
  no_daemon: EXIT.usage,
  nothing_synced: EXIT.usage,
  questions_invalid: EXIT.usage,
  approval_changed: EXIT.held,
  source_unknown: EXIT.usage,
  outside_sources: EXIT.usage,
  control_refused: EXIT.usage,
  control_version: EXIT.usage,
  control_lost: EXIT.service,
  control_silent: EXIT.service,
  control_slow: EXIT.service,
  daemon_stopping: EXIT.service,
  backup_exists: EXIT.usage,
  backup_in_source: EXIT.usage,
  backup_nothing: EXIT.usage,
  backup_invalid: EXIT.usage,
  backup_newer: EXIT.usage,
  backup_damaged: EXIT.filesFailed,
  restore_occupied: EXIT.usage,
  restore_unfinished: EXIT.usage,
  key_not_found: EXIT.usage,
  key_limit: EXIT.usage,
  // A named key file is missing or has no key; without a key the service would refuse every request.
  key_invalid: EXIT.usage,
  key_missing: EXIT.service,
  key_refused: EXIT.service,
  service_unreachable: EXIT.service,
  list_refused: EXIT.service,
  service_refused: EXIT.service,
  model_failed: EXIT.service,
  model_download: EXIT.service,
};

/** Exit status for an error that ended a command; undefined for an unexpected one. */
export function exitCodeOf(error: unknown): number | undefined {
  return BY_CODE[codeOf(error) ?? ""];
}

/**
 * Exit status of a finished pass. A halted source comes first, because none of it was compared; then files that are not
 * searchable, because they need attention before a held delete does.
 */
export function exitCodeOfPass(
  sources: readonly Pick<
    SourceStatus,
    "halted" | "failed" | "deletesRefused" | "unreadable" | "reading" | "waiting" | "held"
  >[],
): number {
  if (sources.some(({ halted }) => halted)) return EXIT.held;
  const isBad = ({
    failed,
    deletesRefused,
    unreadable,
    reading,
    waiting,
  }: (typeof sources)[number]): boolean => failed + deletesRefused + unreadable + reading + waiting > 0;
  if (sources.some(isBad)) return EXIT.filesFailed;
  return sources.some(({ held }) => held > 0) ? EXIT.held : EXIT.done;
}
