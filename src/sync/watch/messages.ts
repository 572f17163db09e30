import type { FailureFacts } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { LinkWatches } from "../scan/rules/followed-links.ts";
import type { WatchedSource } from "../scan/rules/rules.ts";

/** A request of the main thread to the watcher thread. `id` identifies a watched source. */
export type Request =
  | { readonly kind: "open"; readonly id: number; readonly source: WatchedSource }
  | { readonly kind: "renew"; readonly id: number }
  /** Also watch the targets of links, instead of the earlier ones. */
  | { readonly kind: "links"; readonly id: number; readonly links: LinkWatches }
  | { readonly kind: "close"; readonly id: number };

/** A report of the watcher thread. */
export type Report =
  /** Paths that may have changed; undefined is the whole source. */
  | { readonly kind: "dirty"; readonly id: number; readonly paths: readonly RelativePath[] | undefined }
  | { readonly kind: "ready"; readonly id: number; readonly complete: boolean }
  /** The parts of an error: an Error loses its own fields between threads. */
  | { readonly kind: "failed"; readonly id: number; readonly message: string; readonly facts: Facts }
  | { readonly kind: "closed"; readonly id: number };

type Facts = Pick<FailureFacts, "code" | "subject" | "hint" | "retryable">;
