import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../wire/daemon.ts";
import { OLDER_WORDS, STATE_WORDS } from "../../wire/file-state.ts";
import { askDaemon } from "../client/daemon.ts";
import { bytes, lastName, moment } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Show } from "../parts/notice.tsx";
import { Words } from "../parts/words.tsx";
import { Fact } from "../parts/fact.tsx";
import { sentence } from "../view/sentence.ts";
import { addressOf } from "../view/address.ts";

/** A button that explains what happens to a file. */
export function WhyButton({ path }: { readonly path: string }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class="button small plain"
        aria-label={`Why: ${lastName(path)}`}
        onClick={() => setIsOpen(true)}
      >
        Why
      </button>
      {isOpen ? <WhyDialog path={path} onClose={() => setIsOpen(false)} /> : null}
    </>
  );
}

function WhyDialog({ path, onClose }: { readonly path: string; readonly onClose: () => void }): JSX.Element {
  const loaded = useLoad(`why ${path}`, (signal) => askDaemon("why", { path }, signal));
  return (
    <Dialog title={lastName(path)} onClose={onClose}>
      <Show loaded={loaded}>{(found) => <Explained found={found} />}</Show>
      <div>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

const STEPS: Readonly<Record<string, string>> = {
  nothing: "Nothing.",
  create: "It is added.",
  update: "Its new text is sent.",
  retitle: "Its title is changed.",
  move: "It is moved.",
  replace: "It is replaced.",
  delete: "Its document is deleted.",
  touch: "Nothing. Only its time has changed.",
  skip: "It is left out.",
  refuse: "It cannot become a document.",
  wait: "It waits.",
  hold: "Its delete waits for your approval.",
};

function Explained({ found }: { readonly found: AnswerOf<"why"> }): JSX.Element {
  const { version, next, leftOutBy, disk, content, ledger, recipe, state } = found;
  const text = content?.reason ?? undefined;
  return (
    <dl class="why">
      {version === null ? null : (
        <Fact name="Now">
          <Words
            of={sentence(
              `${STATE_WORDS[version.state]}: ${version.reason}${version.hasOlder ? OLDER_WORDS : ""}`,
            )}
          />
        </Fact>
      )}
      <Fact name="Next">
        {STEPS[next.action] ?? next.action}{" "}
        <span class="muted">
          <Words of={next.why} />
        </span>
      </Fact>
      {leftOutBy === null ? null : (
        <Fact name="Left out by">
          <Words of={leftOutBy} />
        </Fact>
      )}
      <Fact name="On the disk">
        {disk.kind === "absent"
          ? "Nothing is there."
          : disk.kind === "unreadable"
            ? `It cannot be read: ${disk.error ?? "unknown reason"}.`
            : `A ${disk.kind}${disk.sizeBytes === undefined ? "" : ` of ${bytes(disk.sizeBytes)}`}${disk.mtimeMs === undefined ? "" : `, changed ${moment(disk.mtimeMs)}`}.`}
      </Fact>
      {text === undefined ? null : (
        <Fact name="Its content">
          <Words of={text} />
        </Fact>
      )}
      {ledger === null ? (
        <Fact name="In the knowledge base">It has no document.</Fact>
      ) : (
        <>
          <Fact name="In the knowledge base">
            {ledger.docId === null ? (
              "It has no document."
            ) : (
              <a href={addressOf(["documents", ledger.docId])}>{ledger.title}</a>
            )}
          </Fact>
          {ledger.error === null ? null : (
            <Fact name="Failed">
              {ledger.error.message}
              {ledger.retryAtMs === null ? "" : ` It is tried again ${moment(ledger.retryAtMs)}.`}
            </Fact>
          )}
          {ledger.warning === null ? null : <Fact name="Read in part">{ledger.warning}</Fact>}
        </>
      )}
      {recipe === null ? null : (
        <Fact name="How it is stored">
          “{recipe.title}”, {recipe.tier}, owner {recipe.ownerId}
        </Fact>
      )}
      {state.paused ? <Fact name="Paused">The folder is paused, so nothing is sent.</Fact> : null}
      {state.halted === null ? null : <Fact name="Halted">{state.halted}</Fact>}
    </dl>
  );
}
