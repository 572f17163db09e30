import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ThreadEntry } from "../../wire/threads.ts";
import { may } from "../client/session.ts";
import { Confirm } from "../parts/dialog.tsx";
import { ErrorNotice, Show } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { ago, counted } from "../view/format.ts";
import { useLoad, useNow } from "../view/load.ts";
import { refine } from "../view/router.ts";
import { deleteThread, loadThreads, running, thread, threadsTurn } from "./conversation.ts";

/** The conversations with an agent that the service remembers, to open and to delete. */
export function ThreadsList({ agent }: { readonly agent: string }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="card" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>Earlier conversations</summary>
      {/* Loaded when a person wants to see them. */}
      {isOpen ? may("admin") ? <Threads key={agent} agent={agent} /> : <NotListed /> : null}
    </details>
  );
}

function NotListed(): JSX.Element {
  return (
    <p class="small muted">
      Only a key with the scope admin may see all conversations of the account. The address of a conversation
      opens it again.
    </p>
  );
}

function Threads({ agent }: { readonly agent: string }): JSX.Element {
  const [rest, setRest] = useState<Page | undefined>();
  const [error, setError] = useState<unknown>();
  const [leaving, setLeaving] = useState<ThreadEntry | undefined>();
  const now = useNow(30_000);
  const first = useLoad(
    `threads ${agent}`,
    (abort) => {
      setRest(undefined);
      return loadThreads(agent, undefined, abort);
    },
    undefined,
    threadsTurn,
  );
  const more = async (cursor: string, before: readonly ThreadEntry[]): Promise<void> => {
    setError(undefined);
    try {
      const page = await loadThreads(agent, cursor, new AbortController().signal);
      setRest({ ...page, threads: [...before, ...page.threads] });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Show loaded={first} lines={3}>
      {(page) => {
        const nextCursor = (rest ?? page).nextCursor;
        const after = rest?.threads ?? [];
        const all = [...page.threads, ...after];
        return all.length === 0 ? (
          <p class="muted">This agent remembers none yet. Ask something below to begin one.</p>
        ) : (
          <>
            <ul class="stack tight threads" aria-label="Earlier conversations">
              {all.map((each) => (
                <li key={each.thread_id} class="row spread">
                  <span class="clip">
                    <a
                      class="clip block"
                      href={addressOf(["ask"], { agent, thread: each.thread_id })}
                      aria-current={thread.value?.id === each.thread_id ? "true" : undefined}
                    >
                      {each.question ?? "Images without a question"}
                    </a>
                    <span class="small muted">
                      {counted(each.turns, "answer")}, {ago(Date.parse(each.usedAt), now)}
                    </span>
                  </span>
                  <button
                    type="button"
                    class="button small"
                    disabled={running.value !== undefined}
                    onClick={() => setLeaving(each)}
                  >
                    Delete<span class="hidden-visually"> “{each.question}”</span>
                  </button>
                </li>
              ))}
            </ul>
            {error === undefined ? null : <ErrorNotice error={error} />}
            {nextCursor === null ? null : (
              <button type="button" class="button small" onClick={() => void more(nextCursor, after)}>
                Show more
              </button>
            )}
            {leaving === undefined ? null : (
              <DeleteThread agent={agent} entry={leaving} onClose={() => setLeaving(undefined)} />
            )}
          </>
        );
      }}
    </Show>
  );
}

type Page = Awaited<ReturnType<typeof loadThreads>>;

function DeleteThread({
  agent,
  entry,
  onClose,
}: {
  readonly agent: string;
  readonly entry: ThreadEntry;
  readonly onClose: () => void;
}): JSX.Element {
  return (
    <Confirm
      title="Delete the conversation?"
      effect={
        <p>
          {counted(entry.turns, "question")} with {entry.turns === 1 ? "its answer" : "their answers"} and
          images {entry.turns === 1 ? "is" : "are"} forgotten, for everyone who has the address. They cannot
          be restored. Documents stay as they are.
        </p>
      }
      number={1}
      action="Delete the conversation"
      onConfirm={async () => {
        await deleteThread(agent, entry.thread_id);
        refine({ thread: undefined });
        toast("The conversation was deleted.");
      }}
      onClose={onClose}
    />
  );
}
