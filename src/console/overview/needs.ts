import type { LiveStatus } from "../../wire/daemon-status.ts";
import type { AccountState } from "../../wire/events.ts";
import { count, counted, duration, lastName } from "../view/format.ts";
import { addressOf } from "../view/address.ts";
import { sentence } from "../view/sentence.ts";
import type { HealthAnswer } from "./health.ts";

/** The whole as a person can see it. `daemon` is undefined where the service runs alone, or for a key that may not ask it. */
export interface Whole {
  readonly documents: number;
  readonly health: HealthAnswer;
  /** Undefined until the first event of the live link. */
  readonly queues: AccountState["queues"] | undefined;
  readonly daemon: LiveStatus | undefined;
}

/** Something that needs a person to continue. */
export interface Need {
  readonly key: string;
  readonly title: string;
  readonly detail: string | undefined;
  /** Words and address of the place where it is settled. */
  readonly action: { readonly label: string; readonly address: string } | undefined;
}

/** Returns everything that needs a person, the most pressing first. Pure. */
export function needsOf({ health, queues, daemon }: Whole): readonly Need[] {
  return [
    ...(daemon === undefined ? [] : daemonNeeds(daemon)),
    ...(daemon?.sources ?? []).flatMap(sourceNeeds),
    ...(daemon?.removed ?? []).filter(({ approved }) => !approved).map(removedNeed),
    ...(queues === undefined ? [] : queueNeeds(queues, daemon)),
    ...healthNeeds(health),
  ];
}

function need(key: string, title: string, detail?: string | null, action?: Need["action"]): Need {
  return { key, title, detail: detail ?? undefined, action };
}

function daemonNeeds({ service, notApplied }: LiveStatus): readonly Need[] {
  const needs = notApplied.map((change) =>
    need(change, "A change of the configuration is not applied", change),
  );
  return [...serviceNeeds(service), ...needs];
}

function serviceNeeds(service: LiveStatus["service"]): readonly Need[] {
  if (service.kind === "key_refused")
    return [need("key", "The knowledge base refuses the daemon's key", service.reason)];
  if (service.kind === "waiting" && service.hint !== undefined)
    return [need("service", "The knowledge base does not answer the daemon", service.hint)];
  return [];
}

function sourceNeeds(source: LiveStatus["sources"][number]): readonly Need[] {
  const needs: Need[] = [];
  const { path } = source;
  const name = lastName(path);
  const tab = (at: string, label: string): Need["action"] => ({
    label,
    address: addressOf(["folders"], { path, tab: at }),
  });
  const reason = [source.holdReason, source.remedy]
    .filter((words) => words !== null)
    .map(sentence)
    .join(" ");
  if (source.halted)
    needs.push(need(`halted ${path}`, `Nothing is sent from ${name}`, reason, tab("held", "Open it")));
  else if (source.held > 0) {
    const waiting = `${counted(source.held, "delete")} of ${name} ${source.held === 1 ? "waits" : "wait"}`;
    needs.push(need(`held ${path}`, `${waiting} for your approval`, reason, tab("held", "Review")));
  }
  const { failed, deletesRefused } = source;
  const why = tab("failed", "See why");
  if (failed > 0) {
    const title = `${counted(failed, "file")} of ${name} failed`;
    needs.push(need(`failed ${path}`, title, "Searches do not find what they say.", why));
  }
  if (deletesRefused > 0) {
    const title = `${counted(deletesRefused, "delete is", "deletes are")} refused in ${name}`;
    needs.push(need(`refused ${path}`, title, "Searches still find what is gone.", why));
  }
  if (source.unreadable > 0) {
    const title = `${counted(source.unreadable, "path")} of ${name} cannot be read`;
    const detail = `Their documents stay as they are: ${source.unreadablePaths.slice(0, 3).join(", ")}`;
    needs.push(need(`unreadable ${path}`, title, detail, tab("activity", "Open the folder")));
  }
  for (const { path: at, reason: words, remedy } of source.warnings) {
    const title = `${name} needs a look: ${at === "" ? "the folder itself" : at}`;
    needs.push(need(`warning ${at} ${words}`, title, `${sentence(words)} ${sentence(remedy)}`));
  }
  return needs;
}

function removedNeed({ path, resources }: LiveStatus["removed"][number]): Need {
  const left = `${counted(resources, "document")} of it ${resources === 1 ? "stays" : "stay"}`;
  return need(
    `removed ${path}`,
    `${lastName(path)} is no longer watched, and ${left}`,
    "Delete them, or watch the folder again.",
    { label: "Review", address: addressOf(["folders"]) },
  );
}

function queueNeeds({ ingest, webhooks }: AccountState["queues"], daemon: Whole["daemon"]): readonly Need[] {
  const needs: Need[] = [];
  if (ingest.failed > 0 && daemon?.sources.some(({ failed }) => failed > 0) !== true) {
    const title = `${counted(ingest.failed, "document")} failed`;
    const action = { label: "See why", address: addressOf(["knowledge"]) };
    needs.push(need("documents", title, "Searches do not find them, or find only their old text.", action));
  }
  if (webhooks.failed > 0) {
    const title = `${counted(webhooks.failed, "message")} to webhooks could not be delivered`;
    const action = { label: "Review", address: addressOf(["access"], { tab: "webhooks" }) };
    needs.push(need("webhooks", title, "Their address says why.", action));
  }
  return needs;
}

function healthNeeds({ status, embedder, reranker, languageModel }: HealthAnswer): readonly Need[] {
  const isBroken = status === "damaged" || status === "failing";
  return [
    ...(isBroken
      ? [need("store", "The store of the knowledge base is not working", "`kbsync doctor` says what to do.")]
      : []),
    ...[embedder, reranker, languageModel]
      .filter(({ state }) => state === "failing" || state === "unavailable")
      .map((model) =>
        need(`model ${model.message}`, model.message, "hint" in model ? model.hint : undefined),
      ),
  ];
}

/** Returns the sentence that sums up the state. Pure. */
export function sentenceOf(whole: Whole, needs: readonly Need[]): string {
  const { daemon, documents, queues } = whole;
  if (needs.length > 0)
    return `${counted(needs.length, "thing")} ${needs.length === 1 ? "needs" : "need"} you`;
  const files = daemon?.sources.reduce((sum, source) => sum + source.files, 0) ?? 0;
  const agreed = daemon?.sources.reduce((sum, source) => sum + source.searchable, 0) ?? 0;
  if (daemon !== undefined && daemon.sources.some(({ compared, paused }) => !compared && !paused))
    return "Scanning your folders for the first time";
  if (files > agreed) {
    const left = daemon?.secondsLeft;
    const time = left === null || left === undefined ? "" : `, about ${duration(left)} left`;
    return `${count(agreed)} of ${counted(files, "file")} are searchable${time}`;
  }
  const beingRead = queues?.ingest.waiting ?? 0;
  if (beingRead > 0) return `${counted(beingRead, "document")} ${beingRead === 1 ? "is" : "are"} being read`;
  if (files > 0) return files === 1 ? "Your file is searchable" : `All ${count(files)} files are searchable`;
  if (documents > 0)
    return documents === 1
      ? "Your document is searchable"
      : `All ${count(documents)} documents are searchable`;
  return "There is nothing to search yet";
}
