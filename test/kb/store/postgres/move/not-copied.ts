/** Tables and columns of SQLite that are not copied, and why. */
export const ONLY_SQLITE: Readonly<Record<string, string>> = {
  vector_change: "what searchers of a running process have in memory",
  code_run: "made from the vectors in the background",
  code_change: "changes of runs of codes",
  "embedding_model.mean": "made from the vectors with the first run of codes",
  "vector.number": "nothing refers to it",
  "kept_answer.number": "nothing refers to it",
  "metadata_value.value": "copied as number or text",
  "word_page.number": "copied as run and page",
};

/** Tables and columns of PostgreSQL that are not copied, and why. */
export const ONLY_POSTGRES: Readonly<Record<string, string>> = {
  schema_version: "the version of the tables",
  claim: "what running processes work on",
  token_bucket: "what keys may send at once",
  vector_change: "what searchers of running processes have in memory",
  "scope.vector_changes": "the number of the newest row of vector_change",
};
