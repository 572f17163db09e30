import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ROUTES } from "../../wire/routes.ts";
import type { EndpointRecord } from "../../wire/webhook.ts";
import { ask } from "../client/api.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Field, Switches } from "../parts/fields.tsx";
import { Empty, ErrorNotice, Show, State } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { ago, counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { useSubmit } from "../view/submit.ts";
import { SecretDialog } from "./secret-dialog.tsx";

const EVENT_WORDS = {
  "resource.chunked": "a document is searchable",
  "resource.error": "a document could not be processed",
  "resource.deleted": "a document was deleted",
  "resource.updated": "only title or metadata changed, as by a rename",
} as const;
const EVERY_MS = 5000;

type Data<T> = { readonly data: T };

/** The addresses that receive events. */
export function WebhooksTab(): JSX.Element {
  const [secret, setSecret] = useState<string>();
  const [removed, setRemoved] = useState<EndpointRecord>();
  const loaded = useLoad(
    "webhooks",
    async (signal) => {
      const answer = await ask<Data<{ endpoints: readonly EndpointRecord[] }>>(ROUTES.webhooks, { signal });
      return answer.data.endpoints;
    },
    EVERY_MS,
  );
  const [error, setError] = useState<unknown>();
  const run = (work: () => Promise<unknown>): void => {
    setError(undefined);
    work().then(loaded.reload, setError);
  };
  const path = ({ _id }: EndpointRecord): string => `${ROUTES.webhooks}/${_id}`;
  const commands: Commands = {
    test: (endpoint) =>
      run(async () => {
        const { data } = await ask<Data<{ arrived: boolean; problem: string | null }>>(
          `${path(endpoint)}/test`,
          {
            method: "POST",
            body: {},
          },
        );
        toast(
          data.arrived ? "The test message arrived." : `It did not arrive: ${data.problem ?? "no answer"}`,
        );
      }),
    replaceSecret: (endpoint) =>
      run(async () => {
        const made = newSecret();
        await ask(path(endpoint), { method: "PUT", body: { secret: made } });
        setSecret(made);
      }),
    enable: (endpoint) =>
      run(() => ask(path(endpoint), { method: "PUT", body: { enabled: !endpoint.enabled } })),
    remove: setRemoved,
  };
  return (
    <>
      <NewEndpoint
        onMade={(made) => {
          setSecret(made);
          loaded.reload();
        }}
      />
      {error === undefined ? null : <ErrorNotice error={error} />}
      <Show loaded={loaded}>{(endpoints) => <Endpoints endpoints={endpoints} commands={commands} />}</Show>
      {secret === undefined ? null : (
        <SecretDialog
          title="The secret of the signatures"
          secret={secret}
          use="The receiver checks with it that messages come from here. It signs every message from now on."
          onClose={() => setSecret(undefined)}
        />
      )}
      {removed === undefined ? null : (
        <Confirm
          title="Delete this address?"
          effect={
            <p>
              {removed.url} receives nothing more. {counted(removed.waiting, "message")} of it will be
              deleted.
            </p>
          }
          number={1}
          action="Delete the address"
          onConfirm={async () => {
            await ask(path(removed), { method: "DELETE" });
            loaded.reload();
          }}
          onClose={() => setRemoved(undefined)}
        />
      )}
    </>
  );
}

interface Commands {
  readonly test: (endpoint: EndpointRecord) => void;
  readonly replaceSecret: (endpoint: EndpointRecord) => void;
  readonly enable: (endpoint: EndpointRecord) => void;
  readonly remove: (endpoint: EndpointRecord) => void;
}

function Endpoints({
  endpoints,
  commands,
}: {
  readonly endpoints: readonly EndpointRecord[];
  readonly commands: Commands;
}): JSX.Element {
  if (endpoints.length === 0) {
    return (
      <Empty title="No address receives events">Add one above to be notified when documents change.</Empty>
    );
  }
  return (
    <ul class="stack">
      {endpoints.map((endpoint) => (
        <li key={endpoint._id} class="card stack tight">
          <div class="row spread">
            <strong class="path">{endpoint.url}</strong>
            <EndpointState endpoint={endpoint} />
          </div>
          <p class="small muted">
            {endpoint.events.length === 0 ? "all but resource.updated" : endpoint.events.join(", ")} ·{" "}
            {counted(endpoint.waiting, "message")} waiting ·{" "}
            {endpoint.deliveredAt === null
              ? "nothing delivered yet"
              : `last arrived ${ago(Date.parse(endpoint.deliveredAt), Date.now())}`}
          </p>
          {endpoint.problem === null ? null : <p class="small">Last attempt: {endpoint.problem}</p>}
          <div class="row">
            <button type="button" class="button small" onClick={() => commands.test(endpoint)}>
              Send a test
            </button>
            <button type="button" class="button small" onClick={() => commands.replaceSecret(endpoint)}>
              New secret
            </button>
            <button type="button" class="button small" onClick={() => commands.enable(endpoint)}>
              {endpoint.enabled ? "Disable" : "Enable"}
            </button>
            <button type="button" class="button small danger" onClick={() => commands.remove(endpoint)}>
              Delete
            </button>
          </div>
        </li>
      ))}
    </ul>
  );
}

function EndpointState({ endpoint }: { readonly endpoint: EndpointRecord }): JSX.Element {
  if (!endpoint.enabled) return <State kind="none">disabled</State>;
  if (endpoint.failed > 0) return <State kind="bad">{counted(endpoint.failed, "message")} given up</State>;
  if (endpoint.problem !== null) return <State kind="wait">retrying</State>;
  return <State kind="good">works</State>;
}

function NewEndpoint({ onMade }: { readonly onMade: (secret: string) => void }): JSX.Element {
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<readonly (keyof typeof EVENT_WORDS)[]>([]);
  const { error, isBusy, submit } = useSubmit(async () => {
    const { data } = await ask<Data<{ secret: string }>>(ROUTES.webhooks, {
      method: "POST",
      body: { url, events },
    });
    setUrl("");
    onMade(data.secret);
  });
  return (
    <form class="card stack" onSubmit={submit} aria-label="New address">
      <h2>New address</h2>
      <Field label="URL" needed hint="A public address that answers with 2xx. Messages are signed.">
        {(attributes) => (
          <input
            {...attributes}
            class="input"
            type="url"
            placeholder="https://example.com/hooks/kbsync"
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
        )}
      </Field>
      <Switches
        legend="Events (none chosen: the first three)"
        words={EVENT_WORDS}
        chosen={events}
        onChange={setEvents}
      />
      {error === undefined ? null : <ErrorNotice error={error} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={url.trim() === "" || isBusy}>
          Add the address
        </button>
      </div>
    </form>
  );
}

/** Makes a signing secret: 256 random bits. */
function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
