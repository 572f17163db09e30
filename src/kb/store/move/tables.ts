import { rowOf } from "../../index/rows.ts";
import { RUN_PAGES_MAX } from "../../index/words/run.ts";
import type { ColumnType, KeyColumn, Table } from "./table.ts";

/** Numbers that a table gives to its rows. No number is given twice, not even that of a removed row, where SQLite keeps `sequence`. */
export interface Counter {
  readonly table: string;
  /** The sequence in PostgreSQL; undefined: that of the column. */
  readonly sequence?: string;
  /** Whether SQLite remembers the highest number (AUTOINCREMENT). */
  readonly isRemembered: boolean;
}

export const COUNTERS: readonly Counter[] = [
  { table: "embedding_model", isRemembered: false },
  { table: "scope", sequence: "scope_number", isRemembered: false },
  { table: "resource", sequence: "resource_number", isRemembered: false },
  { table: "word_run", sequence: "word_run_number", isRemembered: true },
  { table: "word_removal", sequence: "word_removal_number", isRemembered: true },
  { table: "link_fetch", isRemembered: false },
  { table: "webhook_endpoint", isRemembered: false },
  { table: "chat_thread", isRemembered: false },
  { table: "chat_turn", isRemembered: true },
  { table: "batch", isRemembered: true },
  { table: "job", isRemembered: true },
];

const PAGE_ROWS = 500;

interface Own {
  readonly pageRows?: number;
  readonly join?: string;
  /** Columns of the primary key in SQLite if the table has no row ids. */
  readonly sqliteKey?: string;
  readonly select?: Table["sqlite"]["select"];
  readonly insert?: Table["sqlite"]["insert"];
  readonly indexed?: number;
  /** Its name in PostgreSQL, if that is another one. */
  readonly postgresName?: string;
  readonly postgresKey?: readonly KeyColumn[];
}

/** Describes a table; `key`: columns of the primary key in PostgreSQL. */
function table(name: string, key: string, columns: Record<string, string>, own: Own = {}): Table {
  const typeOf: Record<string, ColumnType> = {};
  // The keys of the literal below are the types.
  for (const [type, names] of Object.entries(columns))
    for (const column of names.split(" ")) typeOf[column] = type as ColumnType;
  const { sqliteKey, select = {}, insert = {} } = own;
  const keyColumns = (names: string, selected: Table["sqlite"]["select"]): KeyColumn[] =>
    names.split(" ").map((column) => ({
      sql: selected[column] ?? `t."${column}"`,
      type: typeOf[column] ?? "integer",
    }));
  return {
    name,
    columns: typeOf,
    pageRows: own.pageRows ?? PAGE_ROWS,
    sqlite: {
      join: own.join ?? "",
      key: sqliteKey === undefined ? [{ sql: "t.rowid", type: "integer" }] : keyColumns(sqliteKey, select),
      select,
      insert,
    },
    postgres: {
      name: own.postgresName ?? name,
      key: own.postgresKey ?? keyColumns(key, {}),
      indexed: own.indexed ?? key.split(" ").length,
    },
  };
}

/** Joins the account of a table whose rows have the number of a scope, or of a chunk. The table stays the outer loop. */
function accountOf(scope: string): Pick<Own, "join" | "select" | "insert"> {
  return {
    join: `CROSS JOIN scope AS s ON s.number = ${scope} CROSS JOIN collection AS c ON c.id = s.collection_id`,
    select: { account_id: "c.account_id" },
    insert: { account_id: null },
  };
}

const OF_SCOPE = accountOf("t.scope");
const rows = (scope: string, column: string): string =>
  `${column} BETWEEN ${scope} * ${rowOf(1, 0)} AND (${scope} + 1) * ${rowOf(1, 0)} - 1`;
const OF_ROW = accountOf(`t.row / ${rowOf(1, 0)}`);

/** All tables that are copied, in an order in which each refers to earlier ones only. */
export const TABLES: readonly Table[] = [
  table(
    "account",
    "id",
    { text: "id name", integer: "changes" },
    {
      sqliteKey: "id",
      select: {
        changes: "(SELECT ifnull(max(ordinal), 0) FROM document_change WHERE account_id = t.id)",
      },
      insert: { changes: null },
    },
  ),
  table(
    "api_key",
    "sha256",
    {
      text: "sha256 id account_id name hint scopes created_at expires_at revoked_at parent_id family_sha256 refresh_sha256 access_until",
    },
    { sqliteKey: "sha256" },
  ),
  table(
    "console_session",
    "sha256",
    { text: "sha256 key_sha256 kind", integer: "expires_ms" },
    { sqliteKey: "sha256" },
  ),
  table("collection", "id", { text: "id account_id tier" }, { sqliteKey: "id" }),
  table("embedding_model", "number", { integer: "number", text: "fingerprint" }),
  table(
    "scope",
    "number",
    {
      integer: "number next_sequence resources chunks words merged refiltered segments removed serving_model",
      text: "collection_id owner_id",
    },
    {
      select: {
        segments: `(SELECT count(*) FROM word_segment WHERE ${rows("t.number", "first_row")})`,
        removed:
          "(SELECT ifnull(sum(last - first + 1), 0) FROM word_removal WHERE word_removal.scope = t.number)",
      },
      insert: { segments: null, removed: null },
    },
  ),
  table(
    "resource",
    "account_id id",
    {
      integer: "number scope version first_row chunks revision",
      text: "id account_id origin title title_key label description url head settings created_at refreshed_at updated_at status status_message status_error metadata file_metadata file_token strategy_used warning locations",
      boolean: "is_deleted",
      bytes: "sha256",
    },
    { pageRows: 100 },
  ),
  table(
    "chunk",
    "account_id row",
    { text: "account_id headings text gap", integer: "row resource start line words" },
    OF_ROW,
  ),
  table(
    "vector",
    "account_id row model",
    { text: "account_id", integer: "row model", bytes: "value" },
    // The name of the table is one of a type, and the extension pgvector has a type of the name "vector".
    { ...OF_ROW, postgresName: "chunk_vector" },
  ),
  table("stale_vector", "account_id row", { text: "account_id", integer: "row revision" }, OF_ROW),
  table(
    "sentence_vectors",
    "account_id row",
    { text: "account_id", integer: "row model", bytes: "vectors" },
    { ...OF_ROW, pageRows: 200 },
  ),
  table(
    "word_segment",
    "account_id first_row",
    { text: "account_id", integer: "first_row", bytes: "data" },
    { ...accountOf(`t.first_row / ${rowOf(1, 0)}`), pageRows: 100 },
  ),
  table(
    "word_removal",
    "account_id scope number",
    { text: "account_id", integer: "scope number first last" },
    OF_SCOPE,
  ),
  table(
    "word_run",
    "account_id scope number",
    {
      text: "account_id",
      integer: "number scope first rows",
      bytes: "sequences lengths directory filter",
    },
    { ...OF_SCOPE, pageRows: 4 },
  ),
  // Without pages of runs that are not listed: they are of merges that a crash ended.
  table(
    "word_page",
    "account_id run page",
    { text: "account_id", integer: "run page", bytes: "data" },
    {
      join: `CROSS JOIN word_run AS r ON r.number = t.number / ${RUN_PAGES_MAX}
        CROSS JOIN scope AS s ON s.number = r.scope CROSS JOIN collection AS c ON c.id = s.collection_id`,
      select: {
        account_id: "c.account_id",
        run: `t.number / ${RUN_PAGES_MAX}`,
        page: `t.number % ${RUN_PAGES_MAX}`,
      },
      insert: { account_id: null, run: null, page: null, number: `@run * ${RUN_PAGES_MAX} + @page` },
    },
  ),
  table(
    "metadata_value",
    "scope resource",
    { text: "account_id path kind text", integer: "scope resource", number: "number" },
    {
      join: OF_SCOPE.join ?? "",
      sqliteKey: "scope path kind value resource",
      select: {
        account_id: "c.account_id",
        number: "iif(typeof(t.value) = 'text', NULL, t.value)",
        text: "iif(typeof(t.value) = 'text', t.value, NULL)",
      },
      insert: { account_id: null, number: null, text: null, value: "coalesce(@text, @number)" },
      indexed: 2,
      postgresKey: [
        { sql: "t.scope", type: "integer" },
        { sql: "t.resource", type: "integer" },
        { sql: "t.path", type: "text" },
        { sql: "t.kind", type: "text" },
        { sql: "coalesce(t.number, 0)", type: "number" },
        { sql: "coalesce(t.text, '')", type: "text" },
      ],
    },
  ),
  table(
    "document_change",
    "account_id ordinal",
    {
      text: "account_id kind resource_id collection_id owner_id at status path",
      integer: "ordinal version revision",
      bytes: "sha256",
    },
    { sqliteKey: "account_id ordinal" },
  ),
  table(
    "kept_answer",
    "account_id key",
    { text: "account_id key body_sha256 body text_of about", integer: "status kept_ms sequence" },
    {
      pageRows: 200,
      select: {
        about: "coalesce(t.body ->> '$.resource.id', t.body ->> '$.resourceId', t.body ->> '$.file.token')",
      },
      insert: { about: null },
    },
  ),
  table(
    "stored_file",
    "token",
    {
      text: "token account_id name media_type declared_type sha256 created_at released_at released_of",
      integer: "size_bytes",
    },
    { sqliteKey: "token" },
  ),
  table("link_fetch", "number", {
    integer: "number",
    text: "account_id url text_sha256 etag last_modified",
  }),
  table(
    "usage",
    "account_id hour",
    { text: "account_id searches", integer: "hour documents queued" },
    { sqliteKey: "account_id hour" },
  ),
  table("spending", "day spender", { text: "day spender", integer: "nanos" }, { sqliteKey: "day spender" }),
  table(
    "account_spending",
    "account_id day",
    { text: "account_id day", integer: "nanos" },
    { sqliteKey: "account_id day" },
  ),
  table("webhook_endpoint", "number", {
    integer: "number",
    text: "id account_id url description events secrets created_at updated_at delivered_at problem",
    boolean: "enabled",
  }),
  table(
    "agent",
    "account_id id",
    { text: "account_id id body created_at updated_at" },
    { sqliteKey: "account_id id", pageRows: 50 },
  ),
  table("chat_thread", "number", { integer: "number", text: "account_id agent_id thread_id used_at" }),
  table(
    "chat_turn",
    "number",
    { integer: "number thread", text: "message_id created_at user answer shown", ids: "reads" },
    { pageRows: 100 },
  ),
  table(
    "chat_image",
    "thread token",
    { integer: "thread position after_turn", text: "token linked_at" },
    { sqliteKey: "thread token" },
  ),
  table("batch", "number", {
    integer: "number total",
    text: "id account_id kind created_at updated_at",
    boolean: "is_stopped",
  }),
  table(
    "batch_item",
    "batch position",
    { integer: "batch position", text: "resource_id code message" },
    { sqliteKey: "batch position" },
  ),
  // A text that waits to be indexed may have 32 MB.
  table(
    "job",
    "number",
    {
      integer: "number due_ms waits_from_ms created_ms attempts crashes token chars",
      text: "queue account_id owner_id line name worker problem file_token body",
      boolean: "is_dead is_working",
    },
    { pageRows: 4 },
  ),
];
