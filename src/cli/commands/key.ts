import { type Command, InvalidArgumentError } from "commander";
import { loadConfig } from "../../config/load.ts";
import type { KeyParts } from "../../kb/keys/keys.ts";
import type { Account, KeyRecord } from "../../kb/store/accounts.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { OVERLAP_SECONDS_DEFAULT, Scope } from "../../wire/key.ts";
import type { Context } from "../output/context.ts";
import { keyLines } from "../output/key-lines.ts";
import { type CommonOptions, configRequest, jsonOption } from "../output/options.ts";
import {
  makeServiceFolder,
  makeStateFolder,
  readKeyFile,
  type StateFolder,
  writeKeyFile,
} from "../state/state-folder.ts";

interface KeyOptions extends CommonOptions {
  readonly account: string;
  readonly json?: boolean;
}

interface CreateOptions extends KeyOptions {
  readonly scopes: readonly Scope[];
  readonly expires?: string;
}

/** Account that commands use unless another one is named: that of the state folder's own key. */
const ACCOUNT_DEFAULT = "local";

/**
 * `kbsync key`: the keys of the embedded service. Works on its store directly, whether the service runs or not: anyone who can
 * write there may create accounts.
 */
export function addKey(program: Command, context: Context): void {
  const key = program
    .command("key")
    .description("create, list, revoke and rotate keys of the embedded service; make links to its console")
    .option(
      "--account <name>",
      "account of the key; accounts never see each other's documents",
      account,
      ACCOUNT_DEFAULT,
    );
  key.configureHelp({ ...key.configureHelp(), showGlobalOptions: true });
  const add = (words: string, description: string): Command =>
    key.command(words).description(description).addOption(jsonOption());

  add(
    "create <name>",
    "create a key, and its account if that is new; prints the key, which is not shown again",
  )
    .option("--scopes <list>", "what it may do: read,write,chat,admin", scopes, ["read", "write", "chat"])
    .option(
      "--expires <time>",
      "when it expires: 2027-01-31T12:00:00Z or 90d (default: never)",
      expiry(context),
    )
    .action(async (name: string, _options: CreateOptions, command: Command) =>
      create(context, name, command.optsWithGlobals()),
    );
  add(
    "link",
    "print a link that signs in to the web console with the service's own key, once and within a minute",
  ).action(async (options: Omit<KeyOptions, "account">) => link(context, options));
  add("list", "list the keys of the account").action(async (_options: KeyOptions, command: Command) =>
    list(context, command.optsWithGlobals()),
  );
  add("revoke <id>", "revoke a key for good; a running service refuses it within seconds").action(
    async (id: string, _options: KeyOptions, command: Command) =>
      revoke(context, id, command.optsWithGlobals()),
  );
  add(
    "rotate <id>",
    "replace a key with a new one that lives as long; the old one stays valid for a day",
  ).action(async (id: string, _options: KeyOptions, command: Command) =>
    rotate(context, id, command.optsWithGlobals()),
  );
}

async function create(context: Context, name: string, options: CreateOptions): Promise<void> {
  await withKeys(context, options, async ({ parts, keys }) => {
    const { id: accountId } = await parts.records.ensureAccount(options.account);
    const body = { name, scopes: [...options.scopes], expiresAt: options.expires };
    const { key, record } = await keys.createKey(parts, accountId, body);
    const shown = { account: options.account, ...keys.shownKey(record, context.nowMs()) };
    print(context, options, { key, ...shown }, `${key}\n`);
    note(context, options, `It is not shown again. Account ${options.account}, id ${record.id}.\n`);
  });
}

/** How long a link signs in: as long as it takes to open it at once. */
const LINK_SECONDS = 60;

async function link(context: Context, options: Omit<KeyOptions, "account">): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  if ("apiUrl" in config.service) {
    throw new KbsyncError("the configuration names a hosted service, which has no console of kbsync", {
      code: "usage",
    });
  }
  const [{ runningService }, { consoleLink, hasConsole }] = await Promise.all([
    import("../compose/reached-service.ts"),
    import("../compose/console-link.ts"),
  ]);
  const service = await runningService(config, makeStateFolder(config.stateDir), context.env);
  if (!(await hasConsole(service))) {
    throw new KbsyncError("the running service has no console: it was started before the console was built", {
      code: "usage",
      subject: service.apiUrl,
      hint: "`npm run build` builds it; then restart the service.",
    });
  }
  const address = await consoleLink(service, LINK_SECONDS);
  print(context, options, { link: address }, `${address}\n`);
}

async function list(context: Context, options: KeyOptions): Promise<void> {
  await withKeys(context, options, async ({ parts, keys }) => {
    const { id: accountId } = await existing(parts, options.account);
    const records = await keys.listKeys(parts, accountId);
    const shown = records.map((record) => keys.shownKey(record, context.nowMs()));
    print(context, options, { account: options.account, keys: shown }, keyLines(shown));
  });
}

async function revoke(context: Context, id: string, options: KeyOptions): Promise<void> {
  await withKeys(context, options, async ({ parts, keys, state }) => {
    const { id: accountId } = await existing(parts, options.account);
    const record = (await keys.listKeys(parts, accountId)).find((key) => key.id === id);
    if (record !== undefined && isOwn(state, record, keys.hashKey)) {
      throw new KbsyncError("this is the state folder's own key, which kbsync uses for its service", {
        code: "usage",
        subject: id,
        hint: `\`kbsync key rotate ${id}\` replaces it; then it can be revoked.`,
      });
    }
    const revoked = await keys.revokeKey(parts, accountId, id);
    const shown = keys.shownKey(revoked, context.nowMs());
    print(context, options, shown, `revoked ${revoked.name} (${revoked.hint}…)\n`);
  });
}

async function rotate(context: Context, id: string, options: KeyOptions): Promise<void> {
  await withKeys(context, options, async ({ parts, keys, state }) => {
    const { id: accountId } = await existing(parts, options.account);
    const body = { overlapSeconds: OVERLAP_SECONDS_DEFAULT };
    const { key, record, previous } = await keys.rotateKey(parts, accountId, id, body);
    const own = isOwn(state, previous, keys.hashKey);
    if (own) writeKeyFile(state, key);
    const now = context.nowMs();
    const shown = { ...keys.shownKey(record, now), previous: keys.shownKey(previous, now) };
    print(context, options, { key, ...shown }, `${key}\n`);
    note(context, options, `It is not shown again. The old key works until ${previous.expiresAt}.\n`);
    if (own) note(context, options, `It is now in ${state.keyFile}: restart what uses it before then.\n`);
  });
}

interface OpenKeys {
  readonly parts: KeyParts;
  readonly state: StateFolder;
  readonly keys: typeof import("../../kb/keys/keys.ts");
}

/** Opens the store of the embedded service for one command. */
async function withKeys(
  context: Context,
  options: KeyOptions,
  work: (parts: OpenKeys) => Promise<void>,
): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  if ("apiUrl" in config.service) {
    throw new KbsyncError("the configuration names a hosted service: create its keys there", {
      code: "usage",
    });
  }
  const state = makeStateFolder(config.stateDir);
  makeServiceFolder(state);
  // Loaded here, because no other command needs the service's code.
  const [keys, { openConfiguredStore }] = await Promise.all([
    import("../../kb/keys/keys.ts"),
    import("../compose/store.ts"),
  ]);
  const store = await openConfiguredStore(config.service, state, { env: context.env });
  try {
    await work({ parts: { records: store.records, nowMs: context.nowMs }, state, keys });
  } finally {
    await store.close();
  }
}

async function existing({ records }: KeyParts, name: string): Promise<Account> {
  const accounts = await records.accounts();
  const found = accounts.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new KbsyncError(`there is no account ${name}`, {
    code: "usage",
    subject: name,
    hint:
      accounts.length === 0
        ? "`kbsync key create NAME` makes the first key and its account."
        : `There are: ${accounts.map((one) => one.name).join(", ")}.`,
  });
}

function isOwn(state: StateFolder, record: KeyRecord, hashKey: (key: string) => string): boolean {
  const own = readKeyFile(state.keyFile);
  return own !== undefined && hashKey(own) === record.sha256;
}

/** Standard output gets the key alone, so that a script can read it. */
function print(context: Context, { json }: Pick<KeyOptions, "json">, value: unknown, text: string): void {
  context.stdout.write(json === true ? `${JSON.stringify(value, undefined, 2)}\n` : text);
}

function note(context: Context, { json }: KeyOptions, text: string): void {
  if (json !== true) context.stderr.write(text);
}

function account(text: string): string {
  if (/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,99}$/u.test(text)) return text;
  throw new InvalidArgumentError("expected up to 100 letters, digits, dots, hyphens and underscores");
}

function scopes(text: string): readonly Scope[] {
  const found = Scope.array()
    .min(1)
    .safeParse(text.split(",").map((scope) => scope.trim()));
  if (found.success) return Scope.options.filter((scope) => found.data.includes(scope));
  throw new InvalidArgumentError(`expected some of ${Scope.options.join(",")}`);
}

/** A time, or a number of days from now; as ISO text. */
function expiry({ nowMs }: Context): (text: string) => string {
  return (text) => {
    const days = /^(\d{1,5})d$/.exec(text)?.[1];
    const atMs = days === undefined ? Date.parse(text) : nowMs() + Number(days) * 86_400_000;
    if (Number.isNaN(atMs))
      throw new InvalidArgumentError("expected a time such as 2027-01-31T12:00:00Z, or 90d");
    return new Date(atMs).toISOString();
  };
}
