import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { KeyRecordAnswer, KeysAnswer, NewKeyAnswer, Scope } from "../../wire/key.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { me } from "../client/session.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Field, Switches, TextField } from "../parts/fields.tsx";
import { Empty, ErrorNotice, Show, State } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { ago, dayOf } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { useSubmit } from "../view/submit.ts";
import { SecretDialog } from "./secret-dialog.tsx";

const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  read: "search and read documents",
  write: "add, change and delete documents",
  chat: "ask agents",
  admin: "everything, also keys, webhooks and folders",
};
const DAY_MS = 86_400_000;
const LIVES = [
  { label: "30 days", days: 30 },
  { label: "a year", days: 365 },
  { label: "without end", days: undefined },
] as const;

/** The keys of the account. */
export function KeysTab(): JSX.Element {
  const keys = useLoad("keys", async (signal) => (await ask<KeysAnswer>(ROUTES.keys, { signal })).data.keys);
  const [secret, setSecret] = useState<{ readonly title: string; readonly key: string }>();
  const [asked, setAsked] = useState<{
    readonly record: KeyRecordAnswer;
    readonly what: "rotate" | "revoke";
  }>();
  const act = async (record: KeyRecordAnswer, what: "rotate" | "revoke"): Promise<void> => {
    const path = `${ROUTES.keys}/${record._id}`;
    if (what === "revoke") {
      await ask(path, { method: "DELETE" });
      toast(`The key “${record.name}” is revoked.`);
    } else {
      const { data } = await ask<NewKeyAnswer>(`${path}/rotate`, { method: "POST", body: {} });
      setSecret({ title: `The new key “${record.name}”`, key: data.key });
    }
    keys.reload();
  };
  return (
    <>
      <NewKey
        onMade={({ name, key }) => {
          setSecret({ title: `The key “${name}”`, key });
          keys.reload();
        }}
      />
      <Show loaded={keys}>
        {(list) => <KeyTable list={list.toReversed()} onAsk={(record, what) => setAsked({ record, what })} />}
      </Show>
      {secret === undefined ? null : (
        <SecretDialog
          title={secret.title}
          secret={secret.key}
          use="Put it where the program reads its key; the service stores only a hash of it."
          onClose={() => setSecret(undefined)}
        />
      )}
      {asked === undefined ? null : (
        <Confirm
          title={
            asked.what === "revoke" ? `Revoke “${asked.record.name}”?` : `Rotate “${asked.record.name}”?`
          }
          effect={<p>{effectOf(asked.record, asked.what)}</p>}
          number={1}
          action={asked.what === "revoke" ? "Revoke the key" : "Make a new key"}
          onConfirm={() => act(asked.record, asked.what)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function effectOf({ _id }: KeyRecordAnswer, what: "rotate" | "revoke"): string {
  const own =
    _id === me.value?.key._id ? " You are signed in with this key, so your session ends with it." : "";
  return what === "revoke"
    ? `Programs that use it are refused from their next request on. This cannot be undone.${own}`
    : `A new key with the same name and scopes replaces it. The old one works for one more day.${own}`;
}

function KeyTable({
  list,
  onAsk,
}: {
  readonly list: readonly KeyRecordAnswer[];
  readonly onAsk: (record: KeyRecordAnswer, what: "rotate" | "revoke") => void;
}): JSX.Element {
  if (list.length === 0) return <Empty title="No keys yet" />;
  const now = Date.now();
  return (
    <div class="card flush scroll">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">May</th>
            <th scope="col">Made</th>
            <th scope="col">
              <span class="hidden-visually">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((record) => (
            <tr key={record._id}>
              <td>
                <strong>{record.name}</strong>
                <span class="block small muted">
                  {record.hint}…{record._id === me.value?.key._id ? ", this session" : ""}
                </span>
              </td>
              <td>
                <State kind={record.state === "valid" ? "good" : "none"}>{stateWords(record)}</State>
              </td>
              <td>{record.scopes.join(", ")}</td>
              <td class="small muted">{ago(Date.parse(record.createdAt), now)}</td>
              <td>
                {record.state !== "valid" ? null : (
                  <div class="row">
                    <button type="button" class="button small" onClick={() => onAsk(record, "rotate")}>
                      Rotate<span class="hidden-visually"> {record.name}</span>
                    </button>
                    <button type="button" class="button small danger" onClick={() => onAsk(record, "revoke")}>
                      Revoke<span class="hidden-visually"> {record.name}</span>
                    </button>
                  </div>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function stateWords({ state, expiresAt }: KeyRecordAnswer): string {
  if (state !== "valid") return state;
  return expiresAt === null ? "valid" : `valid until ${dayOf(Date.parse(expiresAt))}`;
}

function NewKey({
  onMade,
}: {
  readonly onMade: (made: { readonly name: string; readonly key: string }) => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [life, setLife] = useState(1);
  const { error, isBusy, submit } = useSubmit(async () => {
    const days = LIVES[life]?.days;
    const expiresAt = days === undefined ? null : new Date(Date.now() + days * DAY_MS).toISOString();
    const { data } = await ask<NewKeyAnswer>(ROUTES.keys, {
      method: "POST",
      body: { name, scopes, expiresAt },
    });
    setName("");
    onMade(data);
  });
  const isReady = name.trim() !== "" && scopes.length > 0;
  return (
    <form class="card stack" onSubmit={submit} aria-label="New key">
      <h2>New key</h2>
      <div class="columns">
        <TextField
          label="Name"
          needed
          hint="Who or what it is for, such as “search page”."
          maxLength={200}
          value={name}
          onText={setName}
        />
        <Field label="Valid for">
          {(attributes) => (
            <select
              {...attributes}
              class="input"
              value={life}
              onChange={(event) => setLife(Number(event.currentTarget.value))}
            >
              {LIVES.map(({ label }, at) => (
                <option key={label} value={at}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Switches legend="It may" words={SCOPE_WORDS} chosen={scopes} onChange={setScopes} />
      {error === undefined ? null : <ErrorNotice error={error} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={!isReady || isBusy}>
          Make the key
        </button>
      </div>
    </form>
  );
}
