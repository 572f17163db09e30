import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ROUTES } from "../../wire/routes.ts";
import type { DeadRecord, EndpointRecord } from "../../wire/webhook.ts";
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

interface Both {
  readonly endpoints: readonly EndpointRecord[];
  readonly dead: readonly DeadRecord[];
}
type Data<T> = { readonly data: T };

/** The addresses that receive events, and the messages that were given up. */
export function WebhooksTab(): JSX.Element {
  const [secret, setSecret] = useState<string>();
  const [removed, setRemoved] = useState<EndpointRecord>();
  const loaded = useLoad(
    "webhooks",
    async (signal): Promise<Both> => {
      const endpoints = await ask<Data<Pick<Both, "endpoints">>>(ROUTES.webhooks, { signal });
      const dead = await ask<Data<Pick<Both, "dead">>>(`${ROUTES.webhooks}/dead`, { signal });
      return { endpoints: endpoints.data.endpoints, dead: dead.data.dead };
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
    rotate: (endpoint) =>
      run(async () => {
        const { data } = await ask<Data<{ secret: string }>>(`${path(endpoint)}/rotate`, {
          method: "POST",
          body: {},
        });
        setSecret(data.secret);
      }),
    enable: (endpoint) =>
      run(() => ask(path(endpoint), { method: "PUT", body: { enabled: !endpoint.enabled } })),
    remove: setRemoved,
    replay: (body) =>
      run(async () => {
        const { data } = await ask<Data<{ replayed: number; disabled?: number }>>(
          `${ROUTES.webhooks}/dead/replay`,
          {
            method: "POST",
            body,
          },
        );
        const left =
          data.disabled === undefined
            ? ""
            : `; ${counted(data.disabled, "message")} of disabled addresses stay undelivered`;
        toast(`${counted(data.replayed, "message")} will be sent again${left}.`);
      }),
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
      <Show loaded={loaded}>
        {({ endpoints, dead }) => (
          <>
            <Endpoints endpoints={endpoints} commands={commands} />
            <DeadLetters dead={dead} commands={commands} />
          </>
        )}
      </Show>
      {secret === undefined ? null : (
        <SecretDialog
          title="The secret of the signatures"
          secret={secret}
          use="The receiver checks with it that messages come from here. The previous secret stays valid for one more day."
          onClose={() => setSecret(undefined)}
        />
      )}
      {removed === undefined ? null : (
        <Confirm
          title="Delete this address?"
          effect={
            <p>
              {removed.url} receives nothing more. {counted(removed.waiting + removed.dead, "message")} of it
              will be deleted.
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
  readonly rotate: (endpoint: EndpointRecord) => void;
  readonly enable: (endpoint: EndpointRecord) => void;
  readonly remove: (endpoint: EndpointRecord) => void;
  readonly replay: (body: { readonly webhookId?: string }) => void;
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
            <button type="button" class="button small" onClick={() => commands.rotate(endpoint)}>
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
  if (endpoint.dead > 0) return <State kind="bad">{counted(endpoint.dead, "message")} given up</State>;
  if (endpoint.problem !== null) return <State kind="wait">retrying</State>;
  return <State kind="good">works</State>;
}

function DeadLetters({
  dead,
  commands,
}: {
  readonly dead: readonly DeadRecord[];
  readonly commands: Commands;
}): JSX.Element | null {
  if (dead.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="dead-letters">
      <div class="row spread">
        <h2 id="dead-letters">Undelivered messages</h2>
        <button type="button" class="button small" onClick={() => commands.replay({})}>
          Send all again
        </button>
      </div>
      <ul class="card flush files">
        {dead.map((message) => (
          <li key={message.webhookId}>
            <div>
              {message.type} <span class="small muted path">to {message.url}</span>
              <span class="block small muted">
                {message.problem}, after {counted(message.attempts, "attempt")}
              </span>
            </div>
            <span class="small muted">{ago(Date.parse(message.createdAt), Date.now())}</span>
            <button
              type="button"
              class="button small"
              onClick={() => commands.replay({ webhookId: message.webhookId })}
            >
              Send again
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
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
