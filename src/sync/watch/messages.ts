import type { FailureFacts } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { LinkWatches } from "../rules/followed-links.ts";
import type { WatchedSource } from "../rules/rules.ts";

/** What the main thread asks of the watcher thread. `id` names one watched source. */
export type Request =
  | { readonly kind: "open"; readonly id: number; readonly source: WatchedSource }
  | { readonly kind: "renew"; readonly id: number }
  /** Watch these too, for links lead there; in place of those told before. */
  | { readonly kind: "links"; readonly id: number; readonly links: LinkWatches }
  | { readonly kind: "close"; readonly id: number };

/** What the watcher thread tells. */
export type Report =
  /** Paths that may have changed; undefined is the whole source. */
  | { readonly kind: "dirty"; readonly id: number; readonly paths: readonly RelativePath[] | undefined }
  | { readonly kind: "ready"; readonly id: number; readonly complete: boolean }
  /** An error in its parts: an Error would lose its own fields on the way between threads. */
  | { readonly kind: "failed"; readonly id: number; readonly message: string; readonly facts: Facts }
  | { readonly kind: "closed"; readonly id: number };

type Facts = Pick<FailureFacts, "code" | "subject" | "hint" | "retryable">;
