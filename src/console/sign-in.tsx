import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isSignedOut } from "./client/api.ts";
import { Dialog } from "./parts/dialog.tsx";
import { Field } from "./parts/fields.tsx";
import { ErrorNotice, Notice } from "./parts/notice.tsx";
import { linkProblem, signIn } from "./client/session.ts";
import { useSubmit } from "./view/submit.ts";

/** The whole page while nobody is signed in. */
export function SignInPage(): JSX.Element {
  return (
    <main class="sign-in">
      <div class="stack">
        <h1>Sign in to kbsync</h1>
        {linkProblem.value === undefined ? null : (
          <Notice kind="wait" title={linkProblem.value}>
            <p>
              <code>kbsync key link</code> prints a new one.
            </p>
          </Notice>
        )}
        <SignInForm />
      </div>
    </main>
  );
}

/**
 * Shown above the page whose session ended: what is typed there stays, and its requests continue afterwards. Closed, for
 * example to copy something from the page, it leaves a line that opens it again.
 */
export function SignInAgain(): JSX.Element | null {
  const [isClosed, setIsClosed] = useState(false);
  useEffect(() => setIsClosed(false), [isSignedOut.value]);
  if (!isSignedOut.value) return null;
  if (isClosed) {
    return (
      <div class="banner foot row" role="status">
        Your session has ended. Requests of this page wait until you sign in.
        <button type="button" class="button small" onClick={() => setIsClosed(false)}>
          Sign in
        </button>
      </div>
    );
  }
  return (
    <Dialog title="Your session has ended" onClose={() => setIsClosed(true)}>
      <p>Sign in again to go on. Nothing on this page is lost.</p>
      <SignInForm />
    </Dialog>
  );
}

function SignInForm(): JSX.Element {
  const [key, setKey] = useState("");
  const { error, isBusy, submit } = useSubmit(() => signIn({ key: key.trim() }));
  return (
    <form class="stack" onSubmit={submit}>
      <Field
        label="Key"
        needed
        hint={
          <>
            Or run <code>kbsync key link</code> on the machine of the service, and open the link that it
            prints.
          </>
        }
      >
        {(attributes) => (
          <input
            {...attributes}
            class="input"
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        )}
      </Field>
      {error === undefined ? null : <ErrorNotice error={error} />}
      <div>
        <button type="submit" class="button primary" disabled={isBusy || key.trim() === ""}>
          Sign in
        </button>
      </div>
    </form>
  );
}
