import { EXIT } from "../output/exit-code.ts";

/** Meaning of each exit status, in the order of the manual. */
export const EXIT_WORDS: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, "done"],
  [EXIT.filesFailed, "some files failed or wait for another try; a figure of eval is too low"],
  [EXIT.usage, "wrong usage, configuration or state folder"],
  [EXIT.service, "the service is unreachable or refuses"],
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

/** Environment variables that the program reads. */
export const ENVIRONMENT: readonly (readonly [name: string, meaning: string])[] = [
  ["KBSYNC_CONFIG", "the configuration file, unless --config names one"],
  ["KBSYNC_STATE_DIR", "the state folder, unless --state-dir names one; overrides the configuration"],
  [
    "KBSYNC_PORT",
    "the port of up and serve, unless --port names one; overrides the configuration, except for 0, any free port",
  ],
  [
    "KBSYNC_DATABASE",
    "the PostgreSQL database of the embedded service, also with a password; overrides service.database in the configuration",
  ],
  ["HTTPS_PROXY", "the proxy for https addresses of a hosted service and of models elsewhere"],
  ["HTTP_PROXY", "the proxy for http addresses, and for https without HTTPS_PROXY"],
  ["NO_PROXY", "hosts that are reached directly, separated by commas; this machine always is"],
  ["HF_ENDPOINT", "a mirror of the model hub, for kbsync models; default: https://huggingface.co"],
  ["KBSYNC_PAUTHKEY", "the key for a hosted service, one line"],
  ["KBSYNC_LOG", "log level: debug, info (default), warn, error, silent"],
  ["KBSYNC_LOG_FORMAT", "format of log lines: text (default), json"],
  ["STATE_DIRECTORY", "the state folder, set by systemd; used unless another is named"],
  ["XDG_STATE_HOME", "unless a state folder is named, it is `kbsync` below this folder"],
  [
    "XDG_RUNTIME_DIR",
    "running instances register in kbsync below it, so that commands in any folder find them",
  ],
  ["CREDENTIALS_DIRECTORY", "folder with the keys that systemd passes to kbsync; set by systemd"],
  ["NOTIFY_SOCKET", "socket for kbsync's state reports to systemd; set by systemd"],
  ["WATCHDOG_USEC", "how often systemd expects a sign of life; set by systemd"],
  ["KBSYNC_UNIT", "set in units that mount each source separately"],
  ["JOURNAL_STREAM", "set by systemd if standard error is its journal"],
  ["CACHE_DIRECTORY", "cache of compiled code, as systemd sets it; else $XDG_CACHE_HOME/kbsync"],
];

/** Files and folders of the program. */
export const FILES: readonly (readonly [path: string, meaning: string])[] = [
  [
    "./kbsync.config.json",
    "the configuration, unless another is named; docs/CONFIG.md in the package explains every key",
  ],
  ["/etc/kbsync/kbsync.config.json", "the configuration of the systemd unit"],
  [
    "~/.local/state/kbsync",
    "the state folder: key, ledger, the embedded service's data and the control socket; /var/lib/kbsync for the systemd unit",
  ],
];
