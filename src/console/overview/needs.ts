import type { LiveStatus } from "../../wire/daemon.ts";
import type { QueuesAnswer } from "../../wire/webhook.ts";
import { count, counted, duration, lastName } from "../view/format.ts";
import { addressOf } from "../view/address.ts";
import type { HealthAnswer } from "./health.ts";

/** What a person can see of the whole. `daemon` is undefined where the service runs alone, or for a key that may not ask it. */
export interface Whole {
  readonly documents: number;
  readonly health: HealthAnswer;
  readonly queues: QueuesAnswer["data"];
  readonly daemon: LiveStatus | undefined;
}

/** Something that does not go on without a person. */
export interface Need {
  readonly key: string;
  readonly title: string;
  readonly detail: string | undefined;
  /** Words and address of the place where it is settled. */
  readonly action: { readonly label: string; readonly address: string } | undefined;
}

/** Returns everything that needs a person, the most pressing first. Pure. */
export function needsOf({ health, queues, daemon }: Whole): readonly Need[] {
  const needs: Need[] = [];
  const add = (key: string, title: string, detail?: string | null, action?: Need["action"]): void => {
    needs.push({ key, title, detail: detail ?? undefined, action });
  };
  if (daemon?.service.kind === "key_refused")
    add("key", "The knowledge base refuses the daemon's key", daemon.service.reason);
  if (daemon?.service.kind === "waiting" && daemon.service.hint !== undefined)
    add("service", "The knowledge base does not answer the daemon", daemon.service.hint);
  for (const source of daemon?.sources ?? []) {
    const name = lastName(source.path);
    const tab = (at: string, label: string): Need["action"] => ({
      label,
      address: addressOf(["folders"], { path: source.path, tab: at }),
    });
    const where = source.path;
    const reason = [source.holdReason, source.remedy].filter((words) => words !== null).join(". ");
    if (source.halted)
      add(`halted ${where}`, `Nothing of ${name} is sent`, reason, tab("held", "Look at it"));
    else if (source.held > 0)
      add(
        `held ${where}`,
        `${counted(source.held, "delete")} of ${name} ${source.held === 1 ? "waits" : "wait"} for your approval`,
        reason,
        tab("held", "Review"),
      );
    if (source.failed > 0)
      add(
        `failed ${where}`,
        `${counted(source.failed, "file")} of ${name} failed`,
        "Searches do not find what they say.",
        tab("failed", "See why"),
      );
    if (source.unreadable > 0)
      add(
        `unreadable ${where}`,
        `${counted(source.unreadable, "path")} of ${name} cannot be read`,
        `Nothing of them is changed: ${source.unreadablePaths.slice(0, 3).join(", ")}`,
        tab("activity", "Open the folder"),
      );
    for (const mount of source.mounts)
      add(
        `mount ${mount.path}`,
        `A mount of ${name} changed: ${mount.path}`,
        `${mount.reason}. ${mount.remedy}`,
      );
  }
  for (const { path, resources, approved } of daemon?.removed ?? []) {
    if (approved) continue;
    add(
      `removed ${path}`,
      `${lastName(path)} is no longer watched, and ${counted(resources, "document")} of it ${resources === 1 ? "stays" : "stay"}`,
      "Delete them, or watch the folder again.",
      { label: "Review", address: addressOf(["folders"]) },
    );
  }
  if (queues.ingest.failed > 0 && daemon?.sources.some(({ failed }) => failed > 0) !== true)
    add(
      "documents",
      `${counted(queues.ingest.failed, "document")} failed`,
      "No search finds them, or their new text.",
      {
        label: "See why",
        address: addressOf(["knowledge"]),
      },
    );
  if (queues.webhooks.dead > 0)
    add(
      "webhooks",
      `${counted(queues.webhooks.dead, "message")} to webhooks were given up`,
      "`kbsync webhooks` sends them again.",
    );
  if (health.status === "damaged" || health.status === "failing")
    add("store", "The store of the knowledge base does not work", "`kbsync doctor` says what to do.");
  for (const model of [health.embedder, health.reranker, health.languageModel])
    if (model.state === "failing" || model.state === "unavailable")
      add(`model ${model.message}`, model.message, "hint" in model ? model.hint : undefined);
  return needs;
}

/** Returns the one sentence that says how things are. Pure. */
export function sentenceOf(whole: Whole, needs: readonly Need[]): string {
  const { daemon, documents, queues } = whole;
  if (needs.length > 0)
    return `${counted(needs.length, "thing")} ${needs.length === 1 ? "needs" : "need"} you`;
  const files = daemon?.sources.reduce((sum, source) => sum + source.files, 0) ?? 0;
  const agreed = daemon?.sources.reduce((sum, source) => sum + source.inAgreement, 0) ?? 0;
  if (daemon !== undefined && daemon.sources.some(({ compared, paused }) => !compared && !paused))
    return "Looking through your folders for the first time";
  if (files > agreed) {
    const left = daemon?.secondsLeft;
    const time = left === null || left === undefined ? "" : `, about ${duration(left)} left`;
    return `${count(agreed)} of ${counted(files, "file")} are searchable${time}`;
  }
  if (queues.ingest.waiting > 0)
    return `${counted(queues.ingest.waiting, "document")} ${queues.ingest.waiting === 1 ? "is" : "are"} being read`;
  if (files > 0) return files === 1 ? "Your file is searchable" : `All ${count(files)} files are searchable`;
  if (documents > 0)
    return documents === 1
      ? "Your document is searchable"
      : `All ${count(documents)} documents are searchable`;
  return "There is nothing to search yet";
}
