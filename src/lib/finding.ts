/** Something that a check found not to be as it should, in words for a person. */
export interface Finding {
  /** Which check found it; a stable kebab-case name. */
  readonly check: string;
  /**
   * `damage`: something is lost or would be answered wrongly. `failure`: nothing is lost, but something does not work or
   * soon will not. `warning`: it works, and should be looked at.
   */
  readonly level: "damage" | "failure" | "warning";
  /** The file, folder or row. */
  readonly subject: string;
  /** What is wrong, with what was expected and what was found. */
  readonly message: string;
  /** What a person can do about it. */
  readonly remedy: string;
}
