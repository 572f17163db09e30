import type { Counter } from "./tables.ts";
import type { Position, Row, Table } from "./table.ts";

/** Rows of a table behind a position, and the position behind them; undefined: the table has no more. */
export interface Page {
  readonly rows: readonly Row[];
  readonly next: Position | undefined;
}

/** A chunk of a text, for joining it. */
export interface TextChunk {
  readonly start: number;
  readonly text: string;
  readonly gap: string;
}

/** A store that is read. */
export interface MoveSource {
  /** The file, or the address of the database without a password. */
  readonly name: string;
  page(table: Table, after: Position | undefined): Promise<Page>;
  /** The highest number that a table has given. */
  last(counter: Counter): Promise<number>;
  /** Chunks of consecutive rows of an account. */
  chunks(accountId: string, first: number, last: number): Promise<readonly TextChunk[]>;
  close(): Promise<void>;
}

/** How far a copy is. */
export interface Progress {
  /** Identifies the store that is copied. */
  readonly source: string;
  /** The table that is copied; the number of tables: all are. */
  readonly table: number;
  readonly after: Position | null;
}

/** A store that is written. Until `end`, services refuse to start on it. */
export interface MoveTarget extends MoveSource {
  /** How far the copy in it is; undefined: there is none. */
  progress(): Promise<Progress | undefined>;
  /** Begins a copy. */
  begin(progress: Progress): Promise<void>;
  /** Adds rows, and notes how far the copy is: both or neither. Throws `move_busy` if another process copies to the same store. */
  add(table: Table, rows: readonly Row[], before: Progress, after: Progress): Promise<void>;
  /** Continues the numbers of a table. */
  count(counter: Counter, last: number): Promise<void>;
  /** Marks the copy as complete. */
  end(): Promise<void>;
}
